"""Figures of the benchmarks come from the audit log; these say how."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.bench.audit import AuditLog, by_client, percentile, read_audit_log


def event(verb: str, resource: str, agent: str, at: str, stage: str = "ResponseComplete") -> dict[str, Any]:
    return {
        "stage": stage,
        "verb": verb,
        "userAgent": agent,
        "objectRef": {"resource": resource, "namespace": "n", "name": "a"},
        "responseStatus": {"code": 201},
        "requestReceivedTimestamp": f"2026-01-01T00:00:{at}Z",
        "stageTimestamp": f"2026-01-01T00:00:{at}Z",
    }


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "audit.log"
    events = [
        event("create", "pods", "tidegate-operator/1", "02.000000"),
        event("create", "streamingapps", "bench", "01.500000"),
        event("watch", "pods", "tidegate-operator/1", "01.000000", stage="ResponseStarted"),
        event("update", "leases", "tidegate-operator/1", "03.000000"),
    ]
    path.write_text("".join(json.dumps(e) + "\n" for e in events) + '{"half a li')
    return path


def test_only_finished_requests_count_and_a_line_being_written_is_left_out(log: Path) -> None:
    assert [(r.verb, r.resource) for r in read_audit_log(log)] == [
        ("create", "streamingapps"),
        ("create", "pods"),
        ("update", "leases"),
    ]


def test_what_is_added_to_a_log_is_whole_lines_that_were_not_returned_before(log: Path) -> None:
    added = AuditLog(log)
    assert added.added() == []
    line = json.dumps(event("patch", "pods", "bench", "04.000000"))
    half = len(line) // 2
    log.write_text(log.read_text().removesuffix('{"half a li') + line[:half])
    assert added.added() == []
    log.write_text(log.read_text() + line[half:] + "\n")
    assert [(r.verb, r.resource) for r in added.added()] == [("patch", "pods")]
    assert added.added() == []


def test_a_clients_leases_are_left_aside(log: Path) -> None:
    assert [r.resource for r in by_client(read_audit_log(log), "tidegate-operator/")] == ["pods"]


@pytest.mark.parametrize(("share", "expected"), [(0.5, 5), (0.99, 10), (1.0, 10), (0.01, 1)])
def test_a_percentile_is_the_nearest_rank(share: float, expected: float) -> None:
    assert percentile(range(10, 0, -1), share) == expected


def test_there_is_no_percentile_of_nothing() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)
