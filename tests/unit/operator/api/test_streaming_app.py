"""Decoding what the API server stores, and encoding the status back."""

import json
from collections import UserDict
from datetime import UTC, datetime
from typing import Any

import pytest

from tidegate.api.streaming_app import (
    Condition,
    DeletionPolicy,
    DriverStatus,
    ExecutorsStatus,
    LastExit,
    Phase,
    QueryStatus,
    Runtime,
    StreamingAppStatus,
    UnreadableAppError,
    UpgradeMode,
    UpgradePhase,
    UpgradeStatus,
    decode_app,
    encode_status,
)
from tidegate_testing.golden import assert_golden
from tidegate_testing.values import app, body

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

FULL_STATUS = StreamingAppStatus(
    phase=Phase.RUNNING,
    conditions=(
        Condition(type="Ready", status="True", reason="QueriesRun", last_transition_time=NOON, observed_generation=3),
    ),
    observed_generation=3,
    epoch=2,
    lineage=1,
    applied_spec_hash="0123456789abcdef",
    driver=DriverStatus(pod_name="orders-driver", restarts=1, start_time=NOON),
    last_exit=LastExit(
        reason="ApplicationFailed", exception="ValueError", message="x", exit_code=1, completion_time=NOON
    ),
    queries=(QueryStatus(name="main", batch_id=318, input_rows_per_second=211.5, last_commit_time=NOON),),
    batch=318,
    input_rows_per_second=212,
    executors=ExecutorsStatus(wanted=2, running=2, summary="2/2"),
    selector="tidegate.dev/app=orders",
)


def test_the_smallest_resource_reads_with_every_default() -> None:
    spec = app().spec
    assert (spec.application.runtime, spec.application.image_pull_policy) == (Runtime.INJECTED, "IfNotPresent")
    assert (spec.driver.resources.cpu, spec.driver.resources.memory) == ("1", "2Gi")
    assert (spec.executor.instances, spec.executor.cores) == (1, 1)
    assert (spec.state.partitions, spec.state.min_batches_to_retain) == (4, 100)
    assert (spec.storage.region, spec.storage.deletion_policy) == ("us-east-1", DeletionPolicy.RETAIN)


def test_a_resource_never_seen_before_has_an_empty_status() -> None:
    assert app().status == StreamingAppStatus()


def test_json_and_what_a_client_made_of_it_read_the_same() -> None:
    resource = body({"sparkConf": {"spark.x": "1"}, "driver.podTemplate": {"spec": {"nodeSelector": {"a": "b"}}}})
    assert decode_app(json.dumps(resource).encode()) == decode_app(resource)


def test_a_view_of_a_mapping_reads_like_the_mapping() -> None:
    resource = body()
    viewed: UserDict[str, Any] = UserDict(resource | {"spec": UserDict(resource["spec"])})
    assert decode_app(viewed) == decode_app(resource)


def test_fields_of_a_later_version_are_ignored() -> None:
    resource = body({"scheduling": {}, "executor.gpu": 1})
    resource["status"] = {"phase": "Running", "lastRehearsal": "x"}
    read = decode_app(resource)
    assert read.spec == app().spec
    assert read.status == StreamingAppStatus(phase=Phase.RUNNING)


def test_times_and_finalizers_of_the_metadata_are_read() -> None:
    resource = body()
    resource["metadata"] |= {"deletionTimestamp": "2026-01-01T12:00:00Z", "finalizers": ["tidegate.dev/streamingapp"]}
    metadata = decode_app(resource).metadata
    assert (metadata.deletion_timestamp, metadata.finalizers) == (NOON, ("tidegate.dev/streamingapp",))


UNREADABLE: dict[str, tuple[dict[str, Any], str]] = {
    "a number for a word": ({"application.image": 3}, "spec.application.image"),
    "a word for a number": ({"executor.instances": "two"}, "spec.executor.instances"),
    "a word outside its list": ({"storage.deletionPolicy": "Archive"}, "spec.storage.deletionPolicy"),
    "a phrase for a list": ({"application.args": "--a"}, "spec.application.args"),
    "a number in a list of words": ({"application.args": ["--a", 1]}, "spec.application.args[1]"),
    "a list for an object": ({"driver": []}, "spec.driver"),
    "a fraction for a whole number": ({"executor.cores": 1.5}, "spec.executor.cores"),
}


@pytest.mark.parametrize(("change", "field"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_resource_that_cannot_be_read_is_an_error_that_names_the_field(change: dict[str, Any], field: str) -> None:
    with pytest.raises(UnreadableAppError) as error:
        decode_app(body(change))
    assert error.value.field == field
    assert field in str(error.value)


def test_a_missing_field_is_named_in_words() -> None:
    resource = body()
    del resource["spec"]["storage"]["uri"]
    with pytest.raises(UnreadableAppError, match=r"spec\.storage: .*`uri`"):
        decode_app(resource)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'"x"', b"null", b"{}", b"\xff"])
def test_what_is_no_resource_at_all_is_the_same_kind_of_error(text: bytes) -> None:
    with pytest.raises(UnreadableAppError):
        decode_app(text)


def test_the_empty_status_is_encoded_as_nothing() -> None:
    assert encode_status(StreamingAppStatus()) == {}


def test_a_status_is_encoded_as_the_api_server_stores_it() -> None:
    assert_golden(__file__, "status", encode_status(FULL_STATUS))


@pytest.mark.parametrize("status", [StreamingAppStatus(), FULL_STATUS], ids=["empty", "full"])
def test_a_status_that_was_stored_reads_as_the_same_value(status: StreamingAppStatus) -> None:
    assert decode_app(body() | {"status": encode_status(status)}).status == status


def test_values_cannot_be_changed_behind_a_readers_back() -> None:
    with pytest.raises(AttributeError):
        app().spec.executor.instances = 3  # type: ignore[misc]  # what the test is about


TEMPLATES = ["podTemplate", "driver.podTemplate", "executor.podTemplate"]


def nested(levels: int) -> Any:
    found: Any = {}
    for _ in range(levels):
        found = {"a": [found]}
    return found


@pytest.mark.parametrize("field", TEMPLATES)
@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ({"spec": nested(30)}, "nested deeper than 50 levels"),
        ({"spec": {"tolerations": [[]] * 400_000}}, "more than 10000 values"),
        ({"spec": {"tolerations": [{"a": [{}] * 99}] * 200}}, "more than 10000 values"),
        ({"spec": {"nodeSelector": {f"k{number}": "" for number in range(100_000)}}}, "more than 10000 values"),
    ],
    ids=["deep", "a long list", "many lists", "a long object"],
)
def test_a_template_that_would_hold_up_all_others_is_unreadable_with_its_field(
    field: str, template: dict[str, Any], problem: str
) -> None:
    with pytest.raises(UnreadableAppError, match=rf"^spec\.{field}: {problem}"):
        decode_app(body({field: template}))


def test_a_template_of_a_large_pod_is_read() -> None:
    containers = [{"name": f"c{n}", "env": [{"name": f"E{m}", "value": ""} for m in range(100)]} for n in range(20)]
    assert decode_app(body({"podTemplate": {"spec": {"containers": containers}}})).spec.pod_template


def test_an_upgrade_counts_as_rolled_back_from_when_that_begins() -> None:
    record = {"number": 1, "from_spec_hash": "a", "to_spec_hash": "b", "lineage": 2}
    each = (UpgradeStatus(phase=phase, mode=UpgradeMode.SNAPSHOT, **record) for phase in UpgradePhase)  # type: ignore[arg-type] # fields of several types
    assert [it.phase for it in each if it.is_rolled_back] == [UpgradePhase.ROLLING_BACK, UpgradePhase.ROLLED_BACK]
