"""Build the images without Docker and load them into a cluster: ``python -m devcluster images build|load``.

The Dockerfiles are ordinary ones (docs/images.md). Debian's buildah runs them with a store of its own below the cache;
what has not changed since the last build is skipped by a hash of its inputs. Starts processes, writes the cache.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from devcluster import layout, packageclients, paths, seed
from devcluster.cluster import Cluster
from devcluster.locking import locked

_BASE = "localhost/debian:12-slim"
# What Debian's own slim images leave out.
_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*", "/usr/share/lintian/*")
_BASE_COMMAND = [
    *("mmdebstrap", "--quiet", "--variant=minbase"),
    *(f"--dpkgopt=path-exclude={pattern}" for pattern in _LEFT_OUT),
    *("--dpkgopt=path-include=/usr/share/doc/*/copyright", "--aptopt=APT::Install-Recommends false"),
    # The mirror is this machine's business: builds mount its address, images do not carry it.
    '--customize-hook=rm -f "$1"/etc/apt/sources.list.d/0000*',
    "bookworm",
]


@dataclass(frozen=True)
class Image:
    """One image: name, Dockerfile, the paths of the checkout that this reads, its build arguments, and the checkout."""

    name: str
    dockerfile: str
    reads: tuple[str, ...]
    arguments: tuple[tuple[str, str], ...] = ()
    root: Path = paths.ROOT


OPERATOR = Image(
    "localhost/tidegate-operator:dev",
    "images/operator/Dockerfile",
    (
        *("locks/operator.lock", "locks/runtime.lock", "images/jars", "jvm"),
        *("operator/tidegate", "spark_app/tidegate_spark"),
    ),
)
SPARK = Image(
    "localhost/tidegate-spark:dev",
    "images/spark/Dockerfile",
    (
        *("locks/spark.lock", "images/jars", "jvm", "images/spark/entrypoint.sh", "images/spark/archive"),
        *("spark_app/tidegate_spark", "spark_app/samples"),
    ),
)
SPARK_BEFORE = Image(
    "localhost/tidegate-spark-4.1:dev",
    SPARK.dockerfile,
    tuple("locks/spark-4.1.lock" if path == "locks/spark.lock" else path for path in SPARK.reads),
    (("SPARK_LINE", "-4.1"),),
)
"""The same with the line of Spark before; the test of an upgrade from it has it built."""
STOCK = Image(
    "localhost/stock-spark:test", "images/stock/Dockerfile", ("locks/spark.lock", "images/spark/entrypoint.sh")
)
"""Only tests need it."""

IMAGES = (OPERATOR, SPARK, STOCK)
OF_TESTS = (*IMAGES, SPARK_BEFORE)


def build(images: Sequence[Image] = IMAGES) -> None:
    """Build those of ``images`` that changed; say for each what was done.

    Raises:
        RuntimeError: a build failed; the text names the image and shows the end of its log.
    """
    with locked(_folder() / "lock"):
        for image in images:
            begin = time.monotonic()
            did = "built" if _build(image) else "unchanged"
            _say(f"{image.name} {did} ({time.monotonic() - begin:.1f} s)")


def load(cluster: Cluster, images: Sequence[Image] = IMAGES) -> None:
    """Build what changed, then give the cluster's node each of ``images`` that it lacks or has in another version.

    Raises:
        RuntimeError: a build failed.
        ComponentError: containerd refused an image.
    """
    build(images)
    give(cluster, images)


def give(cluster: Cluster, images: Sequence[Image] = IMAGES) -> None:
    """Do the same with images as they were last built."""
    give_to(cluster.ctr, images)


def give_to(ctr: seed.Ctr, images: Sequence[Image] = IMAGES) -> None:
    """Do so with a node of which only containerd is there."""
    with locked(_folder() / "lock"):
        _load_missing(ctr, images)


def unpack(images: Sequence[Image] = IMAGES) -> None:
    """Build what changed and have ``images`` unpacked for clusters that are yet to be started: ``up(seeded=True)``.

    Raises:
        RuntimeError: a build failed.
        ComponentError: containerd refused an image.
    """
    build(images)
    with locked(_folder() / "lock"):
        held = _unpacked()
        wanted = {**held, **{image.name: _record(image)["manifest"] for image in images}}
        if wanted != held:
            with seed.opened(seed.folder()) as ctr:
                _load_missing(ctr, images)
            _unpacked_file().write_text(json.dumps(wanted))


def bring_up(cluster: Cluster, images: Sequence[Image] = IMAGES) -> None:
    """Start the cluster with ``images`` on its node, or give a healthy one those that it lacks.

    Raises:
        RuntimeError: a build failed.
        ComponentError: the cluster did not start, or containerd refused an image.
    """
    if cluster.healthy():
        build(images)
    else:
        unpack(images)
        cluster.up(seeded=True)
    give(cluster, images)


def inputs(image: Image) -> str:
    """Return one hash over all that the image is made of: its Dockerfile, what that reads, and the base's recipe."""
    root = image.root
    digest = hashlib.sha256(json.dumps([image.name, _BASE_COMMAND, *image.arguments]).encode())
    for path in (image.dockerfile, ".dockerignore", *image.reads):
        for file in _files(root / path):
            mode = "x" if os.access(file, os.X_OK) else "-"
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            digest.update(f"{file.relative_to(root)} {mode} {content}\n".encode())
    return digest.hexdigest()


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    found = [p for p in path.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    if not found:
        raise RuntimeError(f"{path} is missing or empty, and an image is made of it")
    return sorted(found)


def _build(image: Image) -> bool:
    wanted = inputs(image)
    if _record(image).get("inputs") == wanted:
        return False
    if os.geteuid() != 0:
        raise PermissionError("building images this way needs root; docs/images.md shows the commands for Docker")
    _ensure_base()
    mounts = packageclients.mounts(_folder() / "clients")
    options = [f"--volume={source}:{target}" for source, target in mounts.items()]
    given = {**packageclients.proxies(), **dict(image.arguments)}
    options += [f"--build-arg={name}={value}" for name, value in given.items()]
    _say(f"{image.name} …")
    with _no_leftovers(_log(image)):
        _buildah(
            *("bud", "--layers", "--pull-never", f"--build-arg=BASE={_BASE}", *options),
            *("--ignorefile", image.root / ".dockerignore", "--file", image.root / image.dockerfile),
            *("--tag", image.name, image.root),
            log=_log(image),
        )
    # The layout keeps the blobs of the last push: only what is new is written.
    _buildah("push", "--quiet", image.name, f"oci:{_layout()}:{_tag(image)}", log=_log(image))
    layout.drop_unreferenced(_layout())
    manifest = layout.manifest(_layout(), _tag(image))
    _record_file(image).write_text(json.dumps({"inputs": wanted, "manifest": manifest}))
    return True


def _load_missing(ctr: seed.Ctr, images: Sequence[Image]) -> None:
    present = _digests(ctr("images", "ls"))
    for image in images:
        begin = time.monotonic()
        size = _load(ctr, image) if present.get(image.name) != _record(image)["manifest"] else 0
        done = f"loaded, {size / 1e6:.1f} MB" if size else "is there"
        _say(f"{image.name} {done} ({time.monotonic() - begin:.1f} s)")


def _load(ctr: seed.Ctr, image: Image) -> int:
    known = set(ctr("content", "ls", "--quiet").split())
    with tempfile.NamedTemporaryFile(dir=_folder(), suffix=".tar") as archive:
        path = Path(archive.name)
        layout.write_thin(_layout(), _record(image)["manifest"], image.name, known, path)
        with _kept(ctr, image.name):
            ctr("images", "import", path)
        return path.stat().st_size


@contextmanager
def _kept(ctr: seed.Ctr, name: str) -> Iterator[None]:
    """Give the version of an image that is there another name while ``name`` goes over to the next one.

    Otherwise containerd's collector may take layers that both have before the next one is unpacked upon them.
    """
    before = f"{name}-before"
    if name not in _digests(ctr("images", "ls")):
        yield
        return
    ctr("images", "tag", "--force", name, before)
    try:
        yield
    finally:
        ctr("images", "rm", "--sync", before)


def _digests(listing: str) -> dict[str, str]:
    rows = (line.split() for line in listing.splitlines()[1:])
    return {row[0]: row[2] for row in rows if len(row) > 2}


def _ensure_base() -> None:
    recipe = hashlib.sha256(json.dumps(_BASE_COMMAND).encode()).hexdigest()
    mark = _folder() / "base.recipe"
    if mark.is_file() and mark.read_text() == recipe:
        return
    begin = time.monotonic()
    _say(f"{_BASE} …")
    log = _folder() / "base.log"
    with tempfile.TemporaryDirectory(dir=_folder()) as work:
        tarball = Path(work) / "base.tar"
        _run([*_BASE_COMMAND, tarball, *_mirror(Path(work))], log)
        container = _buildah("from", "scratch", log=log).strip()
        _buildah("add", "--quiet", container, tarball, "/", log=log)
        _buildah("config", "--cmd", "bash", container, log=log)
        _buildah("commit", "--quiet", "--rm", container, _BASE, log=log)
    mark.write_text(recipe)
    _say(f"{_BASE} built ({time.monotonic() - begin:.1f} s)")


def _mirror(work: Path) -> list[str | Path]:
    settings = work / "apt.conf"
    settings.write_text(packageclients.apt_settings())
    sources = packageclients.apt_sources()
    use = [sources] if sources and packageclients.is_debian_12() else []
    return [f"--aptopt={settings}", *use]


@contextmanager
def _no_leftovers(log: Path) -> Iterator[None]:
    """Remove working containers and their mounts before and after: a build that was killed leaves both behind."""
    _clear(log)
    try:
        yield
    finally:
        _clear(log)


def _clear(log: Path) -> None:
    for folder in mounts_below(_store().resolve(), Path("/proc/self/mountinfo").read_text()):
        # Lazily: a process of the killed build may still hold it for a moment.
        subprocess.run(["umount", "--lazy", folder], check=False, capture_output=True)
    _buildah("rm", "--all", log=log)


def mounts_below(folder: Path, mountinfo: str) -> list[Path]:
    """Return the mount points below ``folder`` in the text of a mountinfo file, the last mounted first. Pure."""
    fields = (line.split() for line in mountinfo.splitlines())
    mounted = [Path(f[4].replace("\\040", " ")) for f in fields if len(f) > 4]
    return [path for path in reversed(mounted) if folder in path.parents]


def _buildah(*arguments: str | Path, log: Path) -> str:
    store = _store()
    own: list[str | Path] = ["--root", store / "root", "--runroot", store / "run", "--storage-driver", "overlay"]
    return _run(["buildah", *own, *arguments], log)


def _run(command: Sequence[str | Path], log: Path) -> str:
    """Run one program with its errors and progress in ``log``; return what it printed."""
    program = str(command[0])
    if not shutil.which(program):
        raise RuntimeError(f"{program} is not installed: make setup")
    environment = {**os.environ, "BUILDAH_ISOLATION": "chroot"}
    with log.open("a") as errors:
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True, check=False)
        errors.write(done.stdout)
    if done.returncode != 0:
        end = "".join(log.read_text(errors="replace").splitlines(keepends=True)[-25:])
        raise RuntimeError(f"{program} failed with code {done.returncode}; the end of {log}:\n{end}")
    return done.stdout


def _record(image: Image) -> dict[str, str]:
    file = _record_file(image)
    return dict(json.loads(file.read_text())) if file.is_file() else {}


def _record_file(image: Image) -> Path:
    return _folder() / f"{_tag(image)}.json"


def _unpacked() -> dict[str, str]:
    """Return the manifest of each image that the seed holds."""
    file = _unpacked_file()
    return dict(json.loads(file.read_text())) if file.is_file() and seed.whole(seed.folder()) else {}


def _unpacked_file() -> Path:
    return _folder() / "unpacked.json"


def _log(image: Image) -> Path:
    return _folder() / f"{_tag(image)}.log"


def _tag(image: Image) -> str:
    return image.name.removeprefix("localhost/").partition(":")[0]


def _folder() -> Path:
    return paths.cache() / "images"


def _store() -> Path:
    return _folder() / "store"


def _layout() -> Path:
    return _folder() / "oci"


def _say(text: str) -> None:
    print(f"images: {text}", file=sys.stderr, flush=True)
