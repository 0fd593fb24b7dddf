"""The cgroups of one cluster: made before its kubelet, removed after it. Reads /proc/mounts, writes cgroup folders."""

import contextlib
import hashlib
import os
import time
from pathlib import Path


def name(cluster: str, folder: Path) -> str:
    """Return the cgroup of a cluster; the folder is in it so that two caches may both have a cluster of this name."""
    return f"tidegate-{cluster}-{hashlib.sha256(str(folder).encode()).hexdigest()[:6]}"


def hierarchies() -> list[Path]:
    """Return the mount points of all cgroup hierarchies: one with version 2, one per controller with version 1."""
    fields = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    return sorted({Path(f[1]) for f in fields if f[2] in {"cgroup", "cgroup2"}})


_SHARES_OF_A_CORE = 1024


def create(cgroup: str) -> None:
    """Make the cgroup in every hierarchy; kubelet refuses a parent that does not exist."""
    for hierarchy in hierarchies():
        controllers = hierarchy / "cgroup.controllers"
        if controllers.exists():
            for controller in controllers.read_text().split():
                # The root of a container's own hierarchy may refuse some; kubelet says which one it misses.
                with contextlib.suppress(OSError):
                    (hierarchy / "cgroup.subtree_control").write_text(f"+{controller}")
        place = hierarchy / cgroup
        place.mkdir(exist_ok=True)
        for setting in ("cpuset.cpus", "cpuset.mems"):
            # Version 1 starts with empty sets, in which nothing can run.
            if (place / setting).exists() and not controllers.exists():
                (place / setting).write_text((hierarchy / setting).read_text())
        shares = place / "cpu.shares"
        if shares.exists():
            # As many as a kubelet gives to all pods of a node. Version 1 starts with what a single process has: beside
            # a dozen busy ones, all pods together would get a dozenth of the machine.
            shares.write_text(str(_SHARES_OF_A_CORE * (os.cpu_count() or 1)))


def remove(cgroup: str, timeout: float = 60) -> None:
    """Remove the cgroup and all below it; their processes must have ended.

    Raises:
        TimeoutError: a cgroup was still busy after ``timeout`` seconds.
    """
    end = time.monotonic() + timeout
    for place in [h / cgroup for h in hierarchies()]:
        # The kernel frees a dead process's cgroup a moment after the process is gone.
        while place.exists():
            with contextlib.suppress(OSError):
                for inner, _, _ in os.walk(place, topdown=False):
                    Path(inner).rmdir()
            if place.exists():
                if time.monotonic() > end:
                    raise TimeoutError(f"cgroup {place} is still busy")
                time.sleep(0.05)
