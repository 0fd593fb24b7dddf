"""The processes of a pod's container, found from outside by their cgroup. Reads /proc; kills what it is told to.

Only descendants of one development cluster's supervisor are looked at: nothing else on the machine can be hit.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devcluster.cluster import Cluster
from devcluster.processes import ProcessIdentity, descendants
from tidegate_spark.jvm import jvm_parent

_PROC = Path("/proc")


@dataclass(frozen=True)
class PodProcess:
    """One process of a container."""

    identity: ProcessIdentity
    program: str
    """File name of its executable."""
    command: tuple[str, ...]

    def kill(self) -> None:
        """Send SIGKILL and wait until it is gone."""
        self.identity.kill()


Choice = Callable[[PodProcess], bool]


def is_jvm(process: PodProcess) -> bool:
    """Say whether it is a JVM."""
    return process.program == "java"


def runs_module(module: str) -> Choice:
    """Return what says whether a process is ``python -m module``."""
    return lambda process: process.command[1:3] == ("-m", module)


def runs_script(process: PodProcess) -> bool:
    """Say whether it is the Python that runs a driver's script: its parent, the container's first one, does not.

    What is the parent of JVMs was forked by the first one, too.
    """
    name, _, numbers = _text(process.identity.pid, "stat").rpartition(")")
    if name.endswith(f"({jvm_parent.NAME}"):
        return False
    stat = numbers.split()
    parents = _text(int(stat[1]), "cmdline") if stat else ""
    own, module = process.command[1:3], ("-m", "tidegate_spark")
    return own == module == tuple(parents.split("\0")[1:3])


def container_id(pod: Mapping[str, Any], container: str) -> str:
    """Return the id of a running container, as its cgroup is called; pure.

    Raises:
        AssertionError: the container does not run now.
    """
    statuses = pod.get("status", {}).get("containerStatuses", [])
    status = next((s for s in statuses if s["name"] == container and "running" in s.get("state", {})), None)
    assert status is not None, f"container {container} of pod {pod['metadata']['name']} does not run: {statuses}"
    return str(status["containerID"]).rpartition("/")[2]


def belongs(cgroups: str, pod_uid: str, container: str) -> bool:
    """Say whether the text of a process's ``/proc/PID/cgroup`` is that of a container of a pod; pure."""
    return any(f"/pod{pod_uid}/{container}" in line for line in cgroups.splitlines())


def find(cluster: Cluster, pod: Mapping[str, Any], container: str, choice: Choice) -> PodProcess:
    """Return the one process of a running container that ``choice`` takes; of several the oldest.

    Raises:
        AssertionError: the container does not run, or has no such process.
    """
    uid, name = pod["metadata"]["uid"], container_id(pod, container)
    found = [p for p in map(_process_of, descendants(cluster.control.first_process())) if p and choice(p)]
    ours = [p for p in found if belongs(_text(p.identity.pid, "cgroup"), uid, name)]
    assert ours, f"container {container} of pod {pod['metadata']['name']} has no such process"
    return min(ours, key=lambda process: process.identity.start)


def _process_of(pid: int) -> PodProcess | None:
    try:
        identity = ProcessIdentity.of(pid)
        program = Path(os.readlink(_PROC / str(pid) / "exe")).name
    except OSError:
        return None
    return PodProcess(identity, program, tuple(_text(pid, "cmdline").split("\0")[:-1]))


def _text(pid: int, name: str) -> str:
    try:
        return (_PROC / str(pid) / name).read_text(errors="replace")
    except OSError:
        return ""
