"""Who leads and who wrote what is told from the Lease and from the audit log."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from devcluster.cluster import Cluster
from tidegate_testing.kubectl import Kubectl
from tidegate_testing.operator_pods import OperatorPods, Tenure, last_exit

LEASES = {"resource": "leases"}


def pod(name: str, address: str = "10.244.0.7") -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"podIP": address, "containerStatuses": []}}


def entry(address: str, second: int, *, lease: bool = False, code: int = 200) -> str:
    content = {
        "sourceIPs": [address],
        "requestReceivedTimestamp": f"2026-01-01T00:00:{second:02}.500000Z",
        "verb": "patch",
        "requestURI": "/somewhere",
        "objectRef": LEASES if lease else {"resource": "pods"},
        "responseStatus": {"code": code},
    }
    return json.dumps(content) + "\n"


def operators(folder: Path, log: str) -> OperatorPods:
    audit_log = folder / "audit.jsonl"
    audit_log.write_text(log)
    cluster = SimpleNamespace(audit_log=audit_log)
    return OperatorPods(cast(Cluster, cluster), cast(Kubectl, None), "system")


def test_a_write_is_told_by_its_address_and_not_by_one_that_contains_it(tmp_path: Path) -> None:
    log = entry("10.244.0.7", 1) + entry("10.244.0.70", 2) + entry("10.244.0.7", 3, lease=True)
    found = operators(tmp_path, log).writes(pod("a"))
    assert [(write.what, write.lease) for write in found] == [("patch /somewhere", False), ("patch /somewhere", True)]


def test_only_later_writes_are_told_and_a_line_under_way_is_left_out(tmp_path: Path) -> None:
    log = entry("10.244.0.7", 1) + entry("10.244.0.7", 3) + entry("10.244.0.7", 5)[:-20]
    all_of_them = operators(tmp_path, log).writes(pod("a"))
    later = operators(tmp_path, log).writes(pod("a"), since=all_of_them[0].time)
    assert (len(all_of_them), later) == (2, all_of_them[1:])


def test_what_is_written_without_the_lease_ends_where_the_lease_is_taken_again_and_not_where_that_is_refused(
    tmp_path: Path,
) -> None:
    a = "10.244.0.7"
    log = entry(a, 1) + entry(a, 3, lease=True, code=409) + entry(a, 4) + entry(a, 5, lease=True) + entry(a, 6)
    pods = operators(tmp_path, log)
    lost = pods.writes(pod("a"))[0].time
    assert pods.writes_without_lease(pod("a"), lost) == ["patch /somewhere"]
    assert operators(tmp_path, entry(a, 1) + entry(a, 2)).writes_without_lease(pod("a"), lost) == ["patch /somewhere"]


@pytest.mark.parametrize(("holder", "held"), [("tidegate-a_1", True), ("tidegate-ab_1", False), ("", False)])
def test_a_tenure_is_of_the_pod_that_the_holder_names(holder: str, held: bool) -> None:
    assert Tenure(holder, 0.0, 0.0, 0).is_of(pod("tidegate-a")) is held


def test_an_exit_is_the_last_one_whether_the_container_runs_again_or_not() -> None:
    ended = {"terminated": {"exitCode": 1}}
    states: list[tuple[dict[str, Any], int | None]] = [
        ({"state": {"running": {}}}, None),
        ({"state": {"running": {}}, "lastState": ended}, 1),
        ({"state": ended}, 1),
    ]
    for status, code in states:
        assert last_exit({"status": {"containerStatuses": [status]}}) == code
