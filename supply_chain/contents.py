"""What is inside an image: Debian packages, Python distributions and jars, read from the layers of an OCI layout.

Needs the standard library alone. Reads files; nothing in an image is executed.
"""

import hashlib
import io
import json
import re
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path, PurePosixPath
from typing import Any

STATUS = "var/lib/dpkg/status"
_NAME = "org.opencontainers.image.ref.name"
_METADATA = re.compile(r".*\.dist-info/METADATA")
_PROPERTIES = re.compile(r"META-INF/maven/[^/]+/[^/]+/pom\.properties")
_DELETED, _EMPTIED = ".wh.", ".wh..wh..opq"


@dataclass(frozen=True, order=True)
class Package:
    """A Debian package; ``source`` is the package that it is built from."""

    name: str
    version: str
    architecture: str
    source: str


@dataclass(frozen=True, order=True)
class Distribution:
    """A Python distribution, and the folder that it lies in."""

    name: str
    version: str
    place: str


@dataclass(frozen=True, order=True)
class Jar:
    """A jar: its path, its hash, and what it says it is, as group, name and version."""

    path: str
    sha256: str
    coordinates: tuple[str, str, str] | None


@dataclass(frozen=True)
class Contents:
    """All of an image."""

    manifest: str
    packages: tuple[Package, ...]
    distributions: tuple[Distribution, ...]
    jars: tuple[Jar, ...]


def read_image(layout: Path, tag: str) -> Contents:
    """Return what the image ``tag`` of an OCI layout holds.

    Raises:
        KeyError: the layout has no such image.
    """
    index = json.loads((layout / "index.json").read_text())
    (manifest,) = [m["digest"] for m in index["manifests"] if m.get("annotations", {}).get(_NAME) == tag] or [None]
    if manifest is None:
        raise KeyError(f"{layout} has no image {tag}")
    layers = json.loads(_blob(layout, manifest).read_text())["layers"]
    found = read_layers(_blob(layout, layer["digest"]) for layer in layers)
    packages = [p for text in found.values() if isinstance(text, str) for p in installed(text)]
    return Contents(
        manifest,
        tuple(sorted(packages)),
        tuple(sorted(f for f in found.values() if isinstance(f, Distribution))),
        tuple(sorted(f for f in found.values() if isinstance(f, Jar))),
    )


def read_layers(layers: Iterable[Path]) -> dict[str, str | Distribution | Jar]:
    """Return by path what the layers, the lowest first, leave to be seen: dpkg's status, distributions and jars."""
    found: dict[str, str | Distribution | Jar] = {}
    for layer in layers:
        with tarfile.open(layer, mode="r|*") as archive:
            for path, member in _members(archive):
                _take(found, path, archive, member)
    return found


def _members(archive: tarfile.TarFile) -> Iterator[tuple[str, tarfile.TarInfo]]:
    for member in archive:
        yield str(PurePosixPath("/", member.name)).lstrip("/"), member


def _take(
    found: dict[str, str | Distribution | Jar], path: str, archive: tarfile.TarFile, member: tarfile.TarInfo
) -> None:
    folder, _, name = path.rpartition("/")
    if name.startswith(_DELETED):
        hidden = folder if name == _EMPTIED else f"{folder}/{name.removeprefix(_DELETED)}".lstrip("/")
        for gone in [p for p in found if p == hidden or p.startswith(f"{hidden}/")]:
            del found[gone]
        return
    # Whatever is put over a file hides it, a folder or a link, too.
    found.pop(path, None)
    wanted = path == STATUS or path.endswith(".jar") or _METADATA.fullmatch(path)
    content = archive.extractfile(member) if wanted and member.isfile() else None
    if content is not None:
        found[path] = describe(path, content.read())


def describe(path: str, content: bytes) -> str | Distribution | Jar:
    """Return what a file of interest says; pure."""
    if path == STATUS:
        return content.decode()
    if path.endswith(".jar"):
        return Jar(f"/{path}", hashlib.sha256(content).hexdigest(), _coordinates(content))
    headers = HeaderParser().parsestr(content.decode(errors="replace"))
    return Distribution(headers.get("Name", ""), headers.get("Version", ""), f"/{PurePosixPath(path).parents[1]}")


def installed(status: str) -> list[Package]:
    """Return the packages of dpkg's status file that are installed; pure."""
    entries: list[Any] = [HeaderParser().parsestr(block) for block in status.split("\n\n") if block.strip()]
    return [
        Package(e["Package"], e["Version"], e["Architecture"], (e["Source"] or e["Package"]).partition(" ")[0])
        for e in entries
        if (e["Status"] or "").endswith(" installed")
    ]


def _coordinates(jar: bytes) -> tuple[str, str, str] | None:
    """Return what the jar was published as; None if it does not say, or holds several others."""
    try:
        with zipfile.ZipFile(io.BytesIO(jar)) as archive:
            named = [name for name in archive.namelist() if _PROPERTIES.fullmatch(name)]
            text = archive.read(named[0]).decode() if len(named) == 1 else ""
    except zipfile.BadZipFile:
        return None
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
    found = (values.get("groupId", ""), values.get("artifactId", ""), values.get("version", ""))
    return found if all(found) else None


def _blob(layout: Path, digest: str) -> Path:
    return layout / "blobs" / "sha256" / digest.removeprefix("sha256:")
