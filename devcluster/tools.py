"""The Go programs of the development cluster: built once per set of pins, kept in the cache. Runs go, writes files."""

import fcntl
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from devcluster import paths

KUBERNETES = "v1.35.4"
SOURCES = paths.ROOT / "devcluster" / "tools"

KUBE_NAMES = ("kubelet", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "etcd")

_STRIPPED = "-s -w"
# Without these stamps the programs take themselves for v0.0.0 and refuse each other's version skew.
_STAMPED = " ".join(
    [
        _STRIPPED,
        f"-X k8s.io/component-base/version.gitVersion={KUBERNETES}",
        "-X k8s.io/component-base/version.gitMajor=1",
        f"-X k8s.io/component-base/version.gitMinor={KUBERNETES.split('.')[1]}",
        f"-X k8s.io/client-go/pkg/version.gitVersion={KUBERNETES}",
    ]
)


@dataclass(frozen=True)
class Program:
    """One program: its package, and the module folder whose pins it is built with."""

    name: str
    package: str
    module: Path = SOURCES
    flags: str = _STRIPPED


PROGRAMS = (
    Program("kube", "./kube", flags=_STAMPED),
    Program("kubectl", "./kubectl", flags=_STAMPED),
    Program("versitygw", "./versitygw"),
    Program("coredns", "./coredns"),
    Program("helm", "helm.sh/helm/v4/cmd/helm"),
)
# It needs the Kubernetes libraries of another release than the cluster's, and so minutes of its own: what asks for it
# by name has it built.
KWOK = Program("kwok", "sigs.k8s.io/kwok/cmd/kwok", module=SOURCES / "kwok")

# What enforces network policies, for the test of ours: of another release, too, and built when it is asked for.
KUBE_ROUTER = Program(
    "kube-router", "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router", module=SOURCES / "kube-router"
)

# What kwok's nodes and pods go through, as the kwok module itself defines it.
KWOK_STAGES = "kwok-stages.yaml"
_KWOK_STAGE_FILES = (
    "kustomize/stage/node/fast/node-initialize.yaml",
    "kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "kustomize/stage/pod/fast/pod-ready.yaml",
    "kustomize/stage/pod/fast/pod-complete.yaml",
    "kustomize/stage/pod/fast/pod-delete.yaml",
)


def folder() -> Path:
    """Return where this checkout's programs belong; the name is a hash of all that decides their content."""
    digest = hashlib.sha256()
    files = [f for pattern in ("go.mod", "go.sum", "*.go") for f in SOURCES.rglob(pattern)]
    for file in [*sorted(files), paths.ROOT / "locks" / "bootstrap.lock"]:
        digest.update(f"{file.name}\n".encode() + file.read_bytes())
    digest.update(" ".join([_STAMPED, *_KWOK_STAGE_FILES]).encode())
    return paths.cache() / "tools" / digest.hexdigest()[:12] / "bin"


def program(name: str) -> Path:
    """Return the path of a program by name (also kubectl, etcd …), built if need be."""
    if name in _OF_KWOK:
        return _ensure_kwok() / name
    return (_ensure_kube_router() if name == KUBE_ROUTER.name else ensure()) / name


def ensure() -> Path:
    """Build what is missing but kwok, with the progress on stderr; return the folder of the programs.

    Raises:
        RuntimeError: the build failed (the compiler's words are above it on stderr), or there is no Go.
    """
    target = folder()
    if _has(target, _OF_ALL):
        return target
    with _only_one(target.parent):
        for each in PROGRAMS:
            _build_if_missing(each, target)
        for name in KUBE_NAMES:
            if not (target / name).exists():
                (target / name).symlink_to("kube")
    return target


def _ensure_kwok() -> Path:
    target = folder()
    if _has(target, _OF_KWOK):
        return target
    with _only_one(target.parent):
        _build_if_missing(KWOK, target)
        _collect_kwok_stages(target)
    return target


def _ensure_kube_router() -> Path:
    target = folder()
    if not _has(target, (KUBE_ROUTER.name,)):
        with _only_one(target.parent):
            _build_if_missing(KUBE_ROUTER, target)
    return target


_OF_ALL = (*(p.name for p in PROGRAMS), *KUBE_NAMES)
_OF_KWOK = (KWOK.name, KWOK_STAGES)


def _has(place: Path, names: tuple[str, ...]) -> bool:
    return all((place / name).exists() for name in names)


def _build_if_missing(each: Program, target: Path) -> None:
    if not (target / each.name).exists():
        target.mkdir(parents=True, exist_ok=True)
        _build(each, target)


@contextmanager
def _only_one(place: Path) -> Iterator[None]:
    """Let a second clone wait for the first one's build instead of building the same again."""
    place.mkdir(parents=True, exist_ok=True)
    with (place / "build.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("tools: another build of the same programs runs; waiting for it", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _go() -> Path:
    go = paths.cache() / "boot" / "bin" / "go"
    if not go.exists():
        raise RuntimeError(f"no Go toolchain at {go}: run devcluster/bootstrap.sh (make setup)")
    return go


def _collect_kwok_stages(target: Path) -> None:
    module = subprocess.run(
        [_go(), "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok"],
        cwd=SOURCES / "kwok",
        env=_environment(),
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    stages = "---\n".join((Path(module) / file).read_text() for file in _KWOK_STAGE_FILES)
    partial = target / f".{KWOK_STAGES}.partial"
    partial.write_text(stages)
    partial.rename(target / KWOK_STAGES)


def _build(each: Program, target: Path) -> None:
    go = _go()
    print(f"tools: {each.name} …", end="", flush=True, file=sys.stderr)
    begin = time.monotonic()
    partial = target / f".{each.name}.partial"
    # The build may take minutes and prints nothing while the compiler works, so a dot every few seconds says it lives.
    child = subprocess.Popen(
        [go, "build", "-ldflags", each.flags, "-o", partial, each.package], cwd=each.module, env=_environment()
    )
    try:
        while _still_running(child):
            print(".", end="", flush=True, file=sys.stderr)
    finally:
        child.kill()
        child.wait()
    if child.returncode != 0:
        raise RuntimeError(f"go build of {each.name} failed with code {child.returncode} (its words are above)")
    partial.rename(target / each.name)
    print(f" {time.monotonic() - begin:.0f} s", file=sys.stderr)


def _still_running(child: subprocess.Popen[bytes]) -> bool:
    try:
        child.wait(timeout=5)
    except subprocess.TimeoutExpired:
        return True
    return False


def _environment() -> dict[str, str]:
    """Return the build's environment: our own toolchain and caches, whatever the machine's settings of Go say."""
    return {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOTOOLCHAIN": "local",
        "GOPATH": str(paths.cache() / "go"),
        "GOCACHE": str(paths.cache() / "go-build"),
        "GOFLAGS": "-mod=readonly -modcacherw -trimpath",
        "GOWORK": "off",
        # The compiler's processes are short and small: most of what its garbage collector does is for nothing.
        "GOGC": "400",
    }
