"""Simulated nodes on a real API server: pods bound to them become Running and Ready without any container. Pure."""

from pathlib import Path
from typing import Any

from devcluster import tools

LEASE_SECONDS = 40
"""As long as a kubelet's lease; kwok renews it four times as often."""


def command(folder: Path) -> list[str]:
    """Return the command of kwok, with its own quick stages for nodes and pods."""
    return [
        str(tools.program("kwok")),
        *("--kubeconfig", str(folder / "kwok.kubeconfig"), "--config", str(tools.program(tools.KWOK_STAGES))),
        # Addresses of pods and nodes that are not there lie on loopback: whoever calls one meets a refusal at once, and
        # no packet leaves the machine. A test may listen there in a pod's place.
        *("--manage-all-nodes", "--cidr", "127.64.0.0/12", "--node-ip", "127.0.0.1"),
        # Without leases a node's only heartbeat is its stage's, each ten minutes, and the node controller calls it dead
        # after one: its pods then turn to not ready.
        *("--node-lease-duration-seconds", str(LEASE_SECONDS)),
    ]


def node(number: int) -> dict[str, Any]:
    """Return one simulated node with room for many pods."""
    name = f"kwok-{number}"
    room = {"cpu": "1000", "memory": "4Ti", "pods": "5000"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "type": "kwok"},
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "status": {"allocatable": room, "capacity": room},
    }
