"""What an image holds is what its layers leave to be seen, the last one on top."""

import hashlib
import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from supply_chain import contents
from supply_chain.contents import Contents, Distribution, Jar, Package

Layer = dict[str, bytes | None]
"""Files by path; None is a folder."""

STATUS = b"""Package: base-files
Status: install ok installed
Architecture: amd64
Version: 12.4+deb12u11
Description: files
 of the base

Package: libssl3
Status: install ok installed
Architecture: amd64
Source: openssl (3.0.17-1)
Version: 3.0.17-1~deb12u2

Package: tzdata
Status: deinstall ok config-files
Architecture: all
Version: 2025b
"""
METADATA = b"Metadata-Version: 2.4\nName: kopf\nVersion: 1.45.2\n\nName: of another\n"


def jar(*names: tuple[str, str, str]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for group, name, version in names:
            text = f"#made\nversion={version}\ngroupId={group}\nartifactId={name}\n"
            archive.writestr(f"META-INF/maven/{group}/{name}/pom.properties", text)
        archive.writestr("a.class", b"x")
    return content.getvalue()


def read(folder: Path, *layers: Layer, packed: bool = True) -> Contents:
    """Write an OCI layout with an image of these layers, and read it."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def put(content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        (blobs / digest).write_bytes(content)
        return f"sha256:{digest}"

    described = []
    for layer in layers:
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w:gz" if packed else "w") as archive:
            for name, data in layer.items():
                entry = tarfile.TarInfo(f"./{name}")
                entry.size = len(data or b"")
                entry.type = tarfile.DIRTYPE if data is None else tarfile.REGTYPE
                archive.addfile(entry, io.BytesIO(data or b""))
        described.append({"digest": put(content.getvalue())})
    manifest = put(json.dumps({"layers": described}).encode())
    named = {"digest": manifest, "annotations": {"org.opencontainers.image.ref.name": "app"}}
    (folder / "index.json").write_text(json.dumps({"manifests": [named]}))
    return contents.read_image(folder, "app")


@pytest.mark.parametrize("packed", [True, False])
def test_packages_that_dpkg_has_installed_are_found_with_what_they_are_built_from(tmp_path: Path, packed: bool) -> None:
    assert read(tmp_path, {contents.STATUS: STATUS}, packed=packed).packages == (
        Package("base-files", "12.4+deb12u11", "amd64", "base-files"),
        Package("libssl3", "3.0.17-1~deb12u2", "amd64", "openssl"),
    )


def test_the_last_layers_list_of_packages_counts(tmp_path: Path) -> None:
    later = STATUS.replace(b"12.4+deb12u11", b"12.4+deb12u12")
    found = read(tmp_path, {contents.STATUS: STATUS}, {contents.STATUS: later})
    assert [p.version for p in found.packages if p.name == "base-files"] == ["12.4+deb12u12"]


def test_a_distribution_is_found_by_its_metadata_with_the_folder_that_it_lies_in(tmp_path: Path) -> None:
    found = read(tmp_path, {"opt/venv/lib/kopf-1.45.2.dist-info/METADATA": METADATA})
    assert found.distributions == (Distribution("kopf", "1.45.2", "/opt/venv/lib"),)


def test_a_jar_is_what_it_says_it_is_and_nothing_if_it_holds_several_others_or_is_broken(tmp_path: Path) -> None:
    one = jar(("org.example", "one", "1.2"))
    several = jar(("org.example", "one", "1.2"), ("org.example", "two", "3"))
    found = read(tmp_path, {"a/one.jar": one, "a/several.jar": several, "a/silent.jar": jar(), "b.jar": b"no zip"})
    assert [(j.path, j.coordinates) for j in found.jars] == [
        ("/a/one.jar", ("org.example", "one", "1.2")),
        ("/a/several.jar", None),
        ("/a/silent.jar", None),
        ("/b.jar", None),
    ]
    assert found.jars[0] == Jar("/a/one.jar", hashlib.sha256(one).hexdigest(), ("org.example", "one", "1.2"))


@pytest.mark.parametrize(
    ("later", "left"),
    [
        ({"a/.wh.one.jar": b""}, ["/a/b/two.jar", "/c.jar"]),
        ({".wh.a": b""}, ["/c.jar"]),
        ({"a/.wh..wh..opq": b""}, ["/c.jar"]),
        ({".wh.c.jar": b""}, ["/a/b/two.jar", "/a/one.jar"]),
        ({"c.jar": None}, ["/a/b/two.jar", "/a/one.jar"]),
    ],
    ids=["a file", "a folder", "all in a folder", "at the top", "a folder in its place"],
)
def test_what_a_later_layer_takes_away_is_not_in_the_image(tmp_path: Path, later: Layer, left: list[str]) -> None:
    first: Layer = {"a/one.jar": jar(), "a/b/two.jar": jar(), "c.jar": jar()}
    assert [j.path for j in read(tmp_path, first, later).jars] == left


def test_an_image_that_is_not_in_the_layout_is_named(tmp_path: Path) -> None:
    read(tmp_path, {})
    with pytest.raises(KeyError, match="has no image other"):
        contents.read_image(tmp_path, "other")
