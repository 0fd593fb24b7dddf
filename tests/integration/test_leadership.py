"""Two real operator processes on a real API server: one leads, whatever happens to it. Runs processes.

Each process reaches the API server by a line of its own, and with an address of its own, which the audit log shows.
"""

import itertools
import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from devcluster.apiserver import ApiServer
from tidegate_testing import audit_log
from tidegate_testing.apps import streaming_app
from tidegate_testing.crd import install_crds
from tidegate_testing.cuttable_line import CuttableLine
from tidegate_testing.kubectl import Kubectl
from tidegate_testing.operator_process import OperatorProcess
from tidegate_testing.waiting import wait_for

SYSTEM, LEASE = "tidegate-system", "tidegate-operator"
RELEASED = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": LEASE, "namespace": SYSTEM},
    "spec": {"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 1},
}
READS = {"get", "list", "watch"}
GENEROUS = 300.0
_numbers = itertools.count(1)


@dataclass
class Replica:
    """One operator and its line to the API server."""

    process: OperatorProcess
    line: CuttableLine


@dataclass
class Pair:
    """Two replicas, of which one leads."""

    leader: Replica
    standby: Replica


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer(audit_log=True) as running:
        kubectl = Kubectl(running.kubectl, running.kubeconfig)
        install_crds(kubectl)
        kubectl.run("create", "namespace", SYSTEM)
        # An operator was here before and has released it: who makes a Lease holds only when its duration is over.
        kubectl.apply(RELEASED)
        yield running


@pytest.fixture(scope="module")
def kubectl(server: ApiServer) -> Kubectl:
    return Kubectl(server.kubectl, server.kubeconfig)


@pytest.fixture
def pair(server: ApiServer, tmp_path: Path) -> Iterator[Pair]:
    """Two operators; one leads and the other one is ready to."""
    content = json.loads(server.kubeconfig.read_text())
    port = urlsplit(content["clusters"][0]["cluster"]["server"]).port
    assert port is not None
    with ExitStack() as stack:
        replicas = [start(stack, content, port, tmp_path) for _ in range(2)]
        wait_for("both to be ready", lambda: all(r.process.is_ready() for r in replicas), GENEROUS)
        leader = wait_for("a leader", lambda: next((r for r in replicas if r.process.leads()), None), GENEROUS)
        assert leader is not None
        (standby,) = [replica for replica in replicas if replica is not leader]
        yield Pair(leader, standby)


def start(stack: ExitStack, kubeconfig: dict[str, Any], port: int, folder: Path) -> Replica:
    number = next(_numbers)
    line = stack.enter_context(CuttableLine(port, f"127.0.7.{number}"))
    kubeconfig["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{line.port}"
    path = folder / f"kubeconfig-{number}"
    path.write_text(json.dumps(kubeconfig))
    settings = {"POD_NAMESPACE": SYSTEM, "TIDEGATE_LEASE_NAME": LEASE}
    process = OperatorProcess(path, folder / f"operator-{number}.log", settings)
    process.start()
    stack.callback(end, process)
    return Replica(process, line)


def end(process: OperatorProcess) -> None:
    """End a process, stopped or not; releasing the Lease, if it can."""
    assert process.process is not None
    if process.process.poll() is None:
        process.send(signal.SIGCONT)
        process.end(signal.SIGTERM)


@pytest.fixture
def space(kubectl: Kubectl) -> str:
    name = f"leadership-{next(_numbers)}"
    kubectl.run("create", "namespace", name)
    return name


def create(kubectl: Kubectl, space: str, *names: str) -> None:
    storage = {"uri": "s3://bucket/apps"}
    apps = (streaming_app(n, space, image="shop/orders:1", storage=storage, main="local:///opt/m.py") for n in names)
    kubectl.apply(*apps)


def wait_for_drivers(kubectl: Kubectl, space: str, *names: str) -> None:
    def all_there() -> bool:
        pods = kubectl.list("pods", space)
        return {pod["metadata"]["labels"]["tidegate.dev/app"] for pod in pods} == set(names)

    wait_for(f"drivers of {', '.join(names)}", all_there, GENEROUS)


def requests_of(server: ApiServer, replica: Replica, *, of_lease: bool = False) -> list[dict[str, Any]]:
    """Return the requests of a replica: those about the Lease, or all others but for those about the operator's key.

    The first process that finds no key makes one, be it the leader or not: nobody leads without.
    """
    assert server.audit_log is not None
    ours = [line for line in audit_log.entries(server.audit_log) if replica.line.source in line["sourceIPs"]]
    about = [(line, line.get("objectRef", {})) for line in ours]
    others = [(line, of) for line, of in about if (of.get("resource"), of.get("namespace")) != ("secrets", SYSTEM)]
    return [line for line, of in others if (of.get("resource") == "leases") is of_lease]


def received(line: dict[str, Any]) -> float:
    return datetime.fromisoformat(line["requestReceivedTimestamp"]).timestamp()


def writes_of(server: ApiServer, replica: Replica) -> list[tuple[float, str]]:
    """Return the writes of a replica: when each arrived, and what it was."""
    return [
        (received(line), f"{line['verb']} {line['requestURI']}")
        for line in requests_of(server, replica)
        if line["verb"] not in READS
    ]


def took_over(server: ApiServer, replica: Replica) -> float:
    """Return when a replica that was the standby got the Lease: its first write of it that succeeded."""
    asked = requests_of(server, replica, of_lease=True)
    return min(
        received(line)
        for line in asked
        if line["verb"] not in READS and line["responseStatus"]["code"] < HTTPStatus.MULTIPLE_CHOICES
    )


def holder(kubectl: Kubectl) -> str:
    lease = kubectl.get("lease", LEASE, SYSTEM) or {}
    return str(lease.get("spec", {}).get("holderIdentity", ""))


def exit_status(replica: Replica) -> int | None:
    assert replica.process.process is not None
    return replica.process.process.poll()


def test_the_leader_acts_and_the_standby_only_looks_until_the_leader_is_killed(
    server: ApiServer, kubectl: Kubectl, pair: Pair, space: str
) -> None:
    create(kubectl, space, "one", "two")
    wait_for_drivers(kubectl, space, "one", "two")
    assert not pair.standby.process.leads()
    seen = wait_for("the standby's watches", lambda: requests_of(server, pair.standby), GENEROUS)
    assert {line["verb"] for line in seen} <= READS
    assert writes_of(server, pair.leader) != []
    pair.leader.process.end(signal.SIGKILL)
    create(kubectl, space, "after")
    wait_for_drivers(kubectl, space, "one", "two", "after")
    wait_for("the log of its writes", lambda: writes_of(server, pair.standby), GENEROUS)


def test_a_leader_that_was_stopped_beyond_its_lease_writes_nothing_more_and_ends(
    server: ApiServer, kubectl: Kubectl, pair: Pair, space: str
) -> None:
    names = [f"app-{number}" for number in range(24)]
    create(kubectl, space, *names)
    wait_for("the first writes", lambda: writes_of(server, pair.leader), GENEROUS, 0.02)
    pair.leader.process.send(signal.SIGSTOP)
    create(kubectl, space, "later")
    wait_for_drivers(kubectl, space, *names, "later")
    wait_for("the standby to lead", pair.standby.process.leads, GENEROUS, 0.1)
    writes = [what for replica in (pair.leader, pair.standby) for _, what in writes_of(server, replica)]
    assert [what for what in writes if what.startswith("delete") and "/pods/" in what and space in what] == []
    # What the leader wakes up to is work: a change that it has not seen yet, and whatever it was at.
    kubectl.patch("sapp", "later", space, {"spec": {"application": {"args": ["changed"]}}})
    pair.leader.process.send(signal.SIGCONT)
    assert wait_for("its end", lambda: exit_status(pair.leader) is not None, GENEROUS, 0.1)
    assert exit_status(pair.leader) == 1, pair.leader.process.log.read_text()[-3000:]
    # What it had sent before it was stopped may be received later, but not after the Lease was another's.
    assert [write for write in writes_of(server, pair.leader) if write[0] > took_over(server, pair.standby)] == []
    assert pair.standby.process.leads()


def test_a_leader_that_is_cut_off_ends_and_the_other_one_acts(
    server: ApiServer, kubectl: Kubectl, pair: Pair, space: str
) -> None:
    create(kubectl, space, "before")
    wait_for_drivers(kubectl, space, "before")
    pair.leader.line.cut()
    create(kubectl, space, "after")
    wait_for_drivers(kubectl, space, "before", "after")
    assert wait_for("its end", lambda: exit_status(pair.leader) is not None, GENEROUS, 0.1)
    assert exit_status(pair.leader) == 1, pair.leader.process.log.read_text()[-3000:]
    assert [write for write in writes_of(server, pair.leader) if write[0] > took_over(server, pair.standby)] == []
    wait_for("the log of its writes", lambda: writes_of(server, pair.standby), GENEROUS)


def test_a_leader_that_is_asked_to_end_hands_over_before_its_lease_expires(
    kubectl: Kubectl, pair: Pair, space: str
) -> None:
    names = [f"app-{number}" for number in range(8)]
    before = holder(kubectl)
    create(kubectl, space, *names)
    assert pair.leader.process.end(signal.SIGTERM) == 0, pair.leader.process.log.read_text()[-3000:]
    # It is given back before the process ends: nobody has to wait for it to expire.
    assert holder(kubectl) != before
    wait_for("the other one to lead", pair.standby.process.leads, GENEROUS, 0.1)
    wait_for_drivers(kubectl, space, *names)
    assert "tried again later" not in pair.leader.process.log.read_text()


@pytest.mark.long
def test_a_standby_that_is_asked_to_end_leaves_the_leader_alone(kubectl: Kubectl, pair: Pair, space: str) -> None:
    before = holder(kubectl)
    assert pair.standby.process.end(signal.SIGTERM) == 0
    create(kubectl, space, "one")
    wait_for_drivers(kubectl, space, "one")
    assert holder(kubectl) == before
