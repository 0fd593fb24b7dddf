"""OCI image layouts: what they refer to, and archives that leave out what the reader already has. Files only."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

_NAME = "org.opencontainers.image.ref.name"


def manifest(folder: Path, tag: str) -> str:
    """Return the digest of the manifest that the layout has under ``tag``; raise KeyError if there is none."""
    for described in _index(folder)["manifests"]:
        if described.get("annotations", {}).get(_NAME) == tag:
            return str(described["digest"])
    raise KeyError(f"{folder} has no image {tag}")


def blobs(folder: Path, digest: str) -> list[str]:
    """Return the digests that an image consists of: its manifest, its configuration, its layers."""
    content = _blob(folder, digest)
    return [digest, content["config"]["digest"], *(layer["digest"] for layer in content["layers"])]


def drop_unreferenced(folder: Path) -> None:
    """Remove the blobs that no image of the layout refers to: layers of earlier builds."""
    kept = {d for described in _index(folder)["manifests"] for d in blobs(folder, described["digest"])}
    for file in (folder / "blobs" / "sha256").iterdir():
        if f"sha256:{file.name}" not in kept:
            file.unlink()


def write_thin(folder: Path, digest: str, name: str, known: set[str], target: Path) -> None:
    """Write an OCI archive of one image.

    Args:
        folder: the layout.
        digest: the image's manifest.
        name: the image's full name in the archive.
        known: digests that the reader has; they are left out, which containerd accepts.
        target: the archive.
    """
    described = {
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "digest": digest,
        "size": _path(folder, digest).stat().st_size,
        "annotations": {"io.containerd.image.name": name, _NAME: name},
    }
    with tarfile.open(target, "w") as archive:
        _add(archive, "oci-layout", {"imageLayoutVersion": "1.0.0"})
        _add(archive, "index.json", {"schemaVersion": 2, "manifests": [described]})
        for blob in blobs(folder, digest):
            # The manifest always goes along: without it the archive says nothing.
            if blob == digest or blob not in known:
                archive.add(_path(folder, blob), f"blobs/sha256/{blob.removeprefix('sha256:')}")


def _add(archive: tarfile.TarFile, name: str, content: object) -> None:
    encoded = json.dumps(content).encode()
    entry = tarfile.TarInfo(name)
    entry.size = len(encoded)
    archive.addfile(entry, io.BytesIO(encoded))


def _index(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "index.json").read_text()))


def _blob(folder: Path, digest: str) -> dict[str, Any]:
    return dict(json.loads(_path(folder, digest).read_text()))


def _path(folder: Path, digest: str) -> Path:
    return folder / "blobs" / "sha256" / digest.removeprefix("sha256:")
