"""A containerd root that holds the images, kept in the cache: a new cluster starts with a copy, made of hard links.

Unpacking the Spark image costs a new node half a minute, linking what is unpacked already a second. A node never writes
to files of images (containers copy what they change), so that clusters share nothing that one of them could alter; what
containerd does write to, its databases, is copied. Starts a process, writes the cache.
"""

import fcntl
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from devcluster import paths
from devcluster.control import PATIENCE, ComponentError, Control, sweep
from devcluster.locking import locked

Ctr = Callable[..., str]
"""containerd's own client: takes arguments, returns what was printed, raises ComponentError."""


def folder() -> Path:
    """Return where the seed is kept."""
    return paths.cache() / "images" / "seed"


def ctr(socket: Path, *arguments: str | Path) -> str:
    """Run containerd's client on the images of Kubernetes; return what it printed, raise ComponentError if it fails."""
    command = ["ctr", "--address", socket, "--namespace", "k8s.io", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ComponentError(f"ctr {' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return done.stdout


@contextmanager
def opened(seed: Path) -> Iterator[Ctr]:
    """Run a containerd on the seed while the context lasts, alone; a seed that was not closed well begins again.

    Raises:
        ComponentError: containerd did not start; the text shows the end of its log.
    """
    with locked(_lock(seed), fcntl.LOCK_EX):
        if not whole(seed) and seed.exists():
            shutil.rmtree(seed)
        _mark(seed).unlink(missing_ok=True)
        sweep()
        control = Control(paths.state(paths.bound_name()))
        try:
            # Mounts that unpacking needs go with the namespace, however this ends.
            control.launch(namespaces=True, bound=True)
            socket = control.folder / "containerd.sock"
            (control.folder / "containerd.toml").write_text(_configuration(seed, control.folder))
            control.start("containerd", ["containerd", "--config", control.folder / "containerd.toml"])
            control.until("containerd", socket.exists, timeout=PATIENCE)
            yield lambda *arguments: ctr(socket, *arguments)
            control.stop("containerd", grace=10)
        finally:
            control.wipe()
        # Unpacked files are not synced by containerd: without this, a crash of the machine could leave empty ones.
        subprocess.run(["sync", "--file-system", seed], check=True)
        _mark(seed).touch()


def plant(seed: Path, target: Path) -> bool:
    """Make ``target``, which must not exist, a containerd root with the seed's images; return whether that could be.

    It is not if there is no seed, or if the two are not on one file system.
    """
    with locked(_lock(seed), fcntl.LOCK_SH):
        if not whole(seed):
            return False
        done = subprocess.run(["cp", "-a", "--link", seed, target], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            shutil.rmtree(target, ignore_errors=True)
            return False
        for shared in target.glob("io.containerd.*/*.db"):
            own = shared.with_suffix(".copy")
            shutil.copy2(shared, own)
            own.replace(shared)
    return True


def whole(seed: Path) -> bool:
    """Say whether there is a seed, and it was closed well when it was last opened."""
    return _mark(seed).exists()


def _mark(seed: Path) -> Path:
    """Return the file that says that the seed is whole."""
    return seed.with_name(f"{seed.name}.whole")


def _lock(seed: Path) -> Path:
    return seed.with_name(f"{seed.name}.lock")


def _configuration(seed: Path, state: Path) -> str:
    """Return the configuration (TOML) of a containerd that stores images and runs nothing."""
    return f"""version = 2
root = "{seed}"
state = "{state}/run"
disabled_plugins = [
  "io.containerd.grpc.v1.cri", "io.containerd.internal.v1.tracing", "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
]
[grpc]
  address = "{state}/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{state}/opt"
"""
