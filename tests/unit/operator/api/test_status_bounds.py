"""Each part of a status has a bound, in the CRD and before it is written: users' programs fill them."""

import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tidegate.api.spec import UpgradeMode
from tidegate.api.status.bounds import (
    LONGEST_TEXT,
    LONGEST_WORD,
    MOST_ITEMS,
    MOST_RESULTS,
    WHOLE,
    longest,
    within_bounds,
)
from tidegate.api.status.status import (
    LastExit,
    RehearsalStatus,
    RehearsedQuery,
    RestartsStatus,
    RollbackSnapshot,
    SnapshotBatch,
    StreamingAppStatus,
    UpgradePhase,
    UpgradeStatus,
    encode_status,
)
from tidegate.api.stream_snapshot import encode_snapshot_status
from tidegate.snapshots.rules.plan import decide_snapshot
from tidegate.snapshots.rules.status import MOST_OFFSETS
from tidegate_spark.contract.snapshot_protocol import QueryPin, SnapshotState
from tidegate_testing import plain_yaml
from tidegate_testing.observations import NOW
from tidegate_testing.snapshot_observations import begun, observe_running, report, snapshot, status_of

CRDS = sorted((Path(__file__).parents[4] / "crds").glob("*.yaml"))
LARGEST = 1024 * 1024
"""Bytes; etcd takes half as much again, which is the spec's and the metadata's."""
Part = tuple[str, str, dict[str, Any]]


def parts(path: str, field: str, schema: dict[str, Any]) -> Iterator[Part]:
    """Yield each part of a schema with its path and the name of the field that it is in."""
    yield path, field, schema
    for name, inner in schema.get("properties", {}).items():
        yield from parts(f"{path}.{name}", name, inner)
    if "items" in schema:
        yield from parts(f"{path}[]", field, schema["items"])
    if isinstance(schema.get("additionalProperties"), dict):
        yield from parts(f"{path}{{}}", field, schema["additionalProperties"])


def status_parts() -> list[Part]:
    """Return the parts of the three kinds' statuses."""
    found = []
    for file in CRDS:
        crd = plain_yaml.load(file.read_text(encoding="utf-8"))
        for version in crd["spec"]["versions"]:
            status = version["schema"]["openAPIV3Schema"]["properties"]["status"]
            found += list(parts(f"{crd['spec']['names']['kind']}.status", "status", status))
    return found


def unbounded(schema: dict[str, Any]) -> str:
    """Return what bounds a part lacks, empty if none."""
    kind = schema.get("type")
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return "unknown fields"
    if kind == "array" and "maxItems" not in schema:
        return "maxItems"
    if "additionalProperties" in schema and "maxProperties" not in schema:
        return "maxProperties"
    if kind == "string" and not schema.keys() & {"maxLength", "enum", "format"}:
        return "maxLength"
    return ""


def test_each_list_map_and_text_of_a_status_has_a_bound() -> None:
    found = status_parts()
    assert len(found) > 200
    assert [(path, unbounded(schema)) for path, _, schema in found if unbounded(schema)] == []


def test_the_walk_sees_what_has_none() -> None:
    planted = {"a": {"type": "array", "items": {"type": "string"}}, "m": {"additionalProperties": {"type": "integer"}}}
    found = [(path, unbounded(schema)) for path, _, schema in parts("s", "s", {"properties": planted})]
    assert [it for it in found if it[1]] == [("s.a", "maxItems"), ("s.a[]", "maxLength"), ("s.m", "maxProperties")]


def test_nothing_is_written_that_is_longer_than_the_crd_allows() -> None:
    """Shorter bounds are of what the operator itself writes (conditions, summaries, errors), or the spec's own has."""
    own = {"type", "reason", "summary", "errors", "missing", "requests", "limits"}
    for path, field, schema in status_parts():
        if "maxLength" in schema and field not in own:
            assert schema["maxLength"] >= longest(field), path
        if schema.get("type") == "array" and field not in {"conditions", "queries", "obsolete", "fallbacks"} | own:
            assert schema["maxItems"] >= MOST_ITEMS, path


def test_a_result_is_cut_as_a_result_whatever_it_is_called() -> None:
    cut = within_bounds("status", {"results": {"message": "m" * 99_999, "spec": "s" * 99_999}})
    assert {len(value) for value in cut["results"].values()} == {LONGEST_WORD}


def test_texts_lists_and_results_are_cut_and_the_rest_stays() -> None:
    given = {"message": "m" * 99_999, "items": tuple(range(999)), "results": dict.fromkeys(map(str, range(99)), "x")}
    cut = within_bounds("status", {**given, "spec": "s" * 99_999, "number": 7, "short": "as it is"})
    assert (len(cut["message"]), cut["message"][-2:]) == (LONGEST_TEXT, "m…")
    assert (len(cut["items"]), len(cut["results"])) == (MOST_ITEMS, MOST_RESULTS)
    assert (len(cut["spec"]), cut["number"], cut["short"]) == (99_999, 7, "as it is")
    assert set(WHOLE) == {"spec", "toSpec", "memory"}


def test_of_two_names_that_are_one_once_they_are_cut_one_is_written() -> None:
    named = [{"name": "q" * 300 + end, "committed": 1} for end in ("a", "b")]
    assert [len(item["name"]) for item in within_bounds("batches", [*named, {"name": "c"}])] == [253, 1]


def test_an_upgrade_of_a_program_with_thousands_of_queries_has_a_status_that_etcd_takes() -> None:
    names = [f"{number:05}-{'q' * 200}" for number in range(5_000)]
    upgrade = UpgradeStatus(
        phase=UpgradePhase.GATE,
        mode=UpgradeMode.SNAPSHOT,
        number=1,
        from_spec_hash="a",
        to_spec_hash="b",
        lineage=1,
        queries=tuple(names),
        rehearsal=RehearsalStatus(batches=tuple(RehearsedQuery(name=name, committed=1) for name in names)),
        rollback_snapshot=RollbackSnapshot(
            id="p", lineage=1, batches=tuple(SnapshotBatch(name=name, batch_id=1) for name in names)
        ),
    )
    ended = LastExit(message="x" * LARGEST, exception="y" * LARGEST)
    written = encode_status(StreamingAppStatus(upgrade=upgrade, last_exit=ended))
    assert len(written["upgrade"]["queries"]) == MOST_ITEMS
    assert len(msgspec.json.encode(written)) < LARGEST


def test_a_driver_that_reports_a_thousand_failures_has_its_status_written() -> None:
    times = tuple(datetime.datetime.fromtimestamp(NOW + number, datetime.UTC) for number in range(1_000))
    written = encode_status(StreamingAppStatus(restarts=RestartsStatus(recent_failure_times=times)))
    assert len(written["restarts"]["recentFailureTimes"]) == MOST_ITEMS


@pytest.mark.parametrize("offsets", [20, 10_000, 100_000])
def test_a_snapshot_of_thousands_of_queries_has_a_status_that_etcd_takes(offsets: int) -> None:
    pins = {f"q{number:05}": QueryPin(7, json.dumps("o" * offsets)) for number in range(3_000)}
    o = observe_running(snapshot(begun()), report(SnapshotState.READY, queries=pins))
    written = encode_snapshot_status(status_of(decide_snapshot(o, NOW)))
    kept = [query.get("offsets", "") for query in written["queries"]]
    assert len(kept) == MOST_ITEMS
    assert sum(map(len, kept)) <= MOST_OFFSETS
    assert {len(text) for text in kept} <= {0, offsets + 2}
    assert len(msgspec.json.encode(written)) < LARGEST
