"""Builds the images of ``images/`` without Docker, and loads them into a cluster. Runs buildah and mmdebstrap.

The Dockerfiles are what anybody builds with Docker. Here their base is made on the spot by mmdebstrap, and the machine's
own configuration of its package clients is visible to the build's steps, because a machine that reaches registries only
in its own way (mirror, proxy, private certificate authority) must build as well.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devcluster import paths
from devcluster.cluster import Cluster, load_archive

BASE_IMAGE = "localhost/debian:12-slim"
OPERATOR_IMAGE = "localhost/tidegate-operator:dev"
SPARK_IMAGE = "localhost/tidegate-spark:dev"
STOCK_IMAGE = "localhost/stock-spark:test"

# As Debian's own slim images: what is only read by people is left out.
_BASE_COMMAND = (
    *("mmdebstrap", "--quiet", "--variant=minbase", "--include=ca-certificates"),
    *(f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("man", "doc", "locale", "info", "lintian")),
    "--dpkgopt=path-include=/usr/share/doc/*/copyright",
    "bookworm",
)

# Overlaid and not bound: packages write there when they are installed, and the machine must not change.
_CLIENT_CONFIGURATION = ("/etc/apt", "/etc/ssl/certs", "/usr/local/share/ca-certificates", "/etc/pip.conf")
_PROXY_VARIABLES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


class ImageError(RuntimeError):
    """An image could not be built; the text names it and shows the end of the build's output."""


@dataclass(frozen=True)
class Image:
    """An image, its Dockerfile, and everything of the checkout that the Dockerfile reads."""

    name: str
    dockerfile: str
    inputs: tuple[str, ...]
    donor: str = ""
    """An image of ours that it is made from."""

    @property
    def short(self) -> str:
        """The name without registry and tag, for files and messages."""
        return self.name.partition("/")[2].partition(":")[0]


IMAGES = (
    Image(
        SPARK_IMAGE,
        "images/spark/Dockerfile",
        (
            "images/spark",
            "images/jars",
            "locks/spark.lock",
            "spark_app/tidegate_spark",
            "spark_app/samples",
            ".dockerignore",
        ),
    ),
    Image(
        OPERATOR_IMAGE,
        "images/operator/Dockerfile",
        (
            "images/operator",
            "images/jars",
            "locks/operator.lock",
            "locks/runtime.lock",
            "operator/tidegate",
            "spark_app/tidegate_spark",
            ".dockerignore",
        ),
    ),
    Image(STOCK_IMAGE, "images/stock/Dockerfile", ("images/stock", "images/spark/entrypoint.sh"), donor=SPARK_IMAGE),
)


def build() -> None:
    """Build every image whose inputs have changed; with nothing to do it takes well under a second.

    Raises:
        ImageError: a build failed.
    """
    with _alone():
        _build_base()
        digests: dict[str, str] = {}
        for image in IMAGES:
            # The donor's packages matter to a test image, not every line of the runtime that is stripped from it again.
            digests[image.name] = _digest(image.inputs, BASE_IMAGE + _base_digest())
            stamp = _folder() / f"{image.short}.digest"
            if stamp.exists() and stamp.read_text() == digests[image.name]:
                continue
            with _progress(f"image {image.name}"):
                _build_image(image)
            stamp.write_text(digests[image.name])


def load(cluster: Cluster) -> None:
    """Load the built images into the cluster's image store; layers that it has are not copied again.

    Raises:
        ImageError: an image is not built.
        ComponentError: the cluster is down, or its containerd refused an image.
    """
    held = set(cluster.ctr("content", "ls", "--quiet").split())
    for image in IMAGES:
        layout = _layout(image)
        if not (layout / "index.json").exists():
            raise ImageError(f"{image.name} is not built: make images")
        manifest = json.loads((layout / "index.json").read_text())["manifests"][0]
        names = cluster.ctr("images", "ls", f"name=={image.name}")
        if manifest["digest"] in names:
            continue
        with _progress(f"load {image.name}"), tempfile.TemporaryDirectory(dir=_folder()) as scratch:
            archive = Path(scratch) / "image.tar"
            _write_archive(image, layout, held, archive)
            load_archive(cluster, archive)


def _folder() -> Path:
    folder = paths.cache() / "images"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _layout(image: Image) -> Path:
    return _folder() / "layout" / image.short


@contextmanager
def _alone() -> Iterator[None]:
    """Keep two builds apart, also those of two checkouts."""
    with (_folder() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _progress(what: str) -> Iterator[None]:
    begin = time.monotonic()
    print(f"{what} …", file=sys.stderr, flush=True)
    yield
    print(f"{what}: done in {time.monotonic() - begin:.1f} s", file=sys.stderr, flush=True)


def _digest(inputs: tuple[str, ...], *more: str) -> str:
    """Return a hash of the names, modes and content of all files at or below ``inputs``, and of ``more``."""
    total = hashlib.sha256("\0".join(more).encode())
    for entry in inputs:
        top = paths.ROOT / entry
        for file in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if file.is_file() and "__pycache__" not in file.parts:
                executable = bool(file.stat().st_mode & 0o100)
                content = hashlib.sha256(file.read_bytes()).hexdigest()
                total.update(f"{file.relative_to(paths.ROOT)} {executable} {content}\n".encode())
    return total.hexdigest()


def _base_digest() -> str:
    return hashlib.sha256(" ".join(_BASE_COMMAND).encode()).hexdigest()[:16]


def _build_base() -> None:
    stamp = _folder() / "base.digest"
    if stamp.exists() and stamp.read_text() == _base_digest():
        return
    with _progress("base image"), tempfile.TemporaryDirectory(dir=_folder()) as scratch:
        archive = Path(scratch) / "base.tar"
        _run("base image", [*_BASE_COMMAND, str(archive)])
        container = _run("base image", [*_buildah(), "from", "scratch"]).strip().splitlines()[-1]
        _run("base image", [*_buildah(), "add", "--quiet", container, str(archive), "/"])
        _run("base image", [*_buildah(), "config", "--cmd", "/bin/bash", container])
        _run("base image", [*_buildah(), "commit", "--quiet", "--rm", container, BASE_IMAGE])
    stamp.write_text(_base_digest())


def _build_image(image: Image) -> None:
    arguments = [f"--build-arg=BASE={BASE_IMAGE}", *_client_volumes()]
    if image.donor:
        arguments.append(f"--build-arg=SPARK={image.donor}")
    arguments += [f"--build-arg={name}={os.environ[name]}" for name in _PROXY_VARIABLES if os.environ.get(name)]
    _run(
        image.name,
        [
            *_buildah(),
            *("build", "--layers", "--network=host", "--pull=never", "--format=oci", *arguments),
            *("--tag", image.name, "--file", str(paths.ROOT / image.dockerfile), str(paths.ROOT)),
        ],
    )
    layout = _layout(image)
    layout.parent.mkdir(exist_ok=True)
    # A layout keeps the blobs of earlier builds: only new layers are written. It is begun anew when it has grown.
    if layout.exists() and sum(f.stat().st_size for f in layout.rglob("*")) > 4 * 2**30:
        shutil.rmtree(layout)
    (layout / "index.json").unlink(missing_ok=True)
    # Not compressed: it goes to a containerd on the same disk, and packing a gigabyte takes longer than writing it.
    _run(image.name, [*_buildah(), "push", "--quiet", "--disable-compression", image.name, f"oci:{layout}:dev"])


def _buildah() -> list[str]:
    return ["buildah", "--root", str(_folder() / "store"), "--runroot", str(_folder() / "run")]


def _client_volumes() -> list[str]:
    volumes = [f"--volume={path}:{path}:O" for path in _CLIENT_CONFIGURATION if Path(path).is_dir()]
    volumes += [f"--volume={path}:{path}:ro" for path in _CLIENT_CONFIGURATION if Path(path).is_file()]
    repository = Path.home() / ".m2"
    repository.mkdir(exist_ok=True)
    return [*volumes, f"--volume={repository}:/root/.m2"]


def _run(what: str, command: list[str]) -> str:
    environment = {**os.environ, "BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "overlay"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, env=environment
    )
    if done.returncode != 0:
        output = "\n".join((done.stdout + done.stderr).splitlines()[-25:])
        raise ImageError(f"{what} could not be built:\n{output}")
    return done.stdout


def _write_archive(image: Image, layout: Path, held: set[str], archive: Path) -> None:
    """Write an OCI archive of the image without the blobs that the receiver holds already."""
    manifest = json.loads((layout / "index.json").read_text())["manifests"][0]
    manifest["annotations"] = {
        "io.containerd.image.name": image.name,
        "org.opencontainers.image.ref.name": image.name.rpartition(":")[2],
    }
    index = {"schemaVersion": 2, "manifests": [manifest]}
    parts: dict[str, Any] = json.loads(_blob(layout, manifest["digest"]).read_text())
    needed = [manifest["digest"], parts["config"]["digest"]]
    needed += [layer["digest"] for layer in parts["layers"] if layer["digest"] not in held]
    with tarfile.open(archive, "w") as tar, tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "index.json").write_text(json.dumps(index))
        (Path(scratch) / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
        for name in ("oci-layout", "index.json"):
            tar.add(Path(scratch) / name, name)
        for digest in dict.fromkeys(needed):
            path = _blob(layout, digest)
            tar.add(path, str(path.relative_to(layout)))


def _blob(layout: Path, digest: str) -> Path:
    algorithm, _, value = digest.partition(":")
    return layout / "blobs" / algorithm / value
