"""Archives of images for a node that has some of the layers already."""

import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from devcluster import layout


def _put(folder: Path, content: bytes) -> str:
    digest = hashlib.sha256(content).hexdigest()
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True, exist_ok=True)
    (blobs / digest).write_bytes(content)
    return f"sha256:{digest}"


def _image(folder: Path, *layers: bytes) -> tuple[str, str, list[str]]:
    config = _put(folder, b'{"architecture":"amd64"}')
    digests = [_put(folder, layer) for layer in layers]
    content = {"config": {"digest": config}, "layers": [{"digest": digest} for digest in digests]}
    manifest = _put(folder, json.dumps(content).encode())
    described = {"digest": manifest, "annotations": {"org.opencontainers.image.ref.name": "app"}}
    (folder / "index.json").write_text(json.dumps({"manifests": [described]}))
    return manifest, config, digests


def _names(archive: Path) -> set[str]:
    with tarfile.open(archive) as opened:
        return {name.replace("blobs/sha256/", "sha256:") for name in opened.getnames()}


def test_a_node_without_the_image_gets_every_blob(tmp_path: Path) -> None:
    manifest, config, layers = _image(tmp_path, b"system", b"application")
    layout.write_thin(tmp_path, manifest, "localhost/app:dev", set(), tmp_path / "a.tar")
    assert _names(tmp_path / "a.tar") == {"oci-layout", "index.json", manifest, config, *layers}


def test_a_node_with_the_large_layer_gets_only_what_it_lacks(tmp_path: Path) -> None:
    manifest, config, (system, application) = _image(tmp_path, b"system", b"application")
    layout.write_thin(tmp_path, manifest, "localhost/app:dev", {system}, tmp_path / "a.tar")
    assert _names(tmp_path / "a.tar") == {"oci-layout", "index.json", manifest, config, application}


def test_the_manifest_goes_along_even_if_the_node_has_it(tmp_path: Path) -> None:
    manifest, config, layers = _image(tmp_path, b"system")
    layout.write_thin(tmp_path, manifest, "localhost/app:dev", {manifest, config, *layers}, tmp_path / "a.tar")
    assert _names(tmp_path / "a.tar") == {"oci-layout", "index.json", manifest}


def test_layers_of_earlier_builds_are_dropped_and_those_in_use_stay(tmp_path: Path) -> None:
    manifest, config, layers = _image(tmp_path, b"system", b"new application")
    old = _put(tmp_path, b"old application")
    layout.drop_unreferenced(tmp_path)
    kept = {f"sha256:{file.name}" for file in (tmp_path / "blobs" / "sha256").iterdir()}
    assert kept == {manifest, config, *layers}
    assert old not in kept


def test_a_tag_that_was_never_built_is_an_error_that_names_it(tmp_path: Path) -> None:
    _image(tmp_path, b"system")
    with pytest.raises(KeyError, match="other"):
        layout.manifest(tmp_path, "other")
