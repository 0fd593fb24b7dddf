"""How many applications there are series of: a namespace can name any number that do not exist."""

import msgspec
from prometheus_client import CollectorRegistry, generate_latest

from tidegate.api.control_message import MessagePhase
from tidegate.api.streaming_app import LocalReference
from tidegate.control.metrics import ControlMetrics
from tidegate.engine import app_names
from tidegate.engine.app_names import AppNames
from tidegate.snapshots.metrics import SnapshotMetrics
from tidegate_testing.control_observations import ended, message
from tidegate_testing.snapshot_observations import ready_snapshot


def test_a_namespace_has_so_many_names_and_no_other_has_less_for_it() -> None:
    names = AppNames()
    for number in range(app_names.MOST_NAMES):
        names.add(("shop", f"a{number}"))
    assert [names.admits(app) for app in (("shop", "a7"), ("shop", "new"), ("other", "new"))] == [True, False, True]
    names.add(("shop", "a7"))
    assert [names.take(("shop", "a7")) for _ in range(2)] == [False, True]
    assert names.admits(("shop", "new"))


def test_messages_to_any_number_of_names_have_so_many_series() -> None:
    registry = CollectorRegistry()
    metrics = ControlMetrics(registry)
    for number in range(app_names.MOST_NAMES + 50):
        app = ("shop", f"a{number}")
        known = message(status=ended(MessagePhase.FAILED))
        spec = msgspec.structs.replace(known.spec, app_ref=LocalReference(name=app[1]))
        after = msgspec.structs.replace(known, spec=spec)
        metrics.count(message(), after)
        metrics.show(app, {"Failed": 1})
    shown = generate_latest(registry).decode()
    assert shown.count("tidegate_control_messages{") == app_names.MOST_NAMES
    assert shown.count("tidegate_control_failed_total{") == app_names.MOST_NAMES
    for number in range(app_names.MOST_NAMES):
        metrics.show(("shop", f"a{number}"), {})
    assert "tidegate_control_messages{" not in generate_latest(registry).decode()


OF_SNAPSHOTS = (
    "tidegate_snapshots{",
    "tidegate_snapshots_verified_total{",
    "tidegate_snapshots_exported_total{",
    "tidegate_snapshots_expired_total{",
    "tidegate_snapshot_pod_seconds_count{",
    "tidegate_snapshot_pod_copied_bytes_total{",
    "tidegate_snapshot_pod_shared_bytes_total{",
)


def test_snapshots_of_any_number_of_names_have_so_many_series_and_they_go_with_their_last() -> None:
    registry = CollectorRegistry()
    metrics, known = SnapshotMetrics(registry), ready_snapshot()
    made = []
    for number in range(app_names.MOST_NAMES + 50):
        spec = msgspec.structs.replace(known.spec, app_ref=LocalReference(name=f"a{number}"))
        metadata = msgspec.structs.replace(known.metadata, name=f"s{number}")
        made.append(msgspec.structs.replace(known, spec=spec, metadata=metadata))
        metrics.count_verified(made[-1].app_key, "whole")
        metrics.show(made[-1], made[-1])
        metrics.count_exported(made[-1].app_key, complete=True)
        metrics.count_expired(made[-1].app_key)
        metrics.count_taken_by_pod(made[-1].app_key, 1.0, copied=1, shared=1)
    shown = generate_latest(registry).decode()
    assert {name: shown.count(name) for name in OF_SNAPSHOTS} == dict.fromkeys(OF_SNAPSHOTS, app_names.MOST_NAMES)
    for snapshot in made:
        metrics.forget(snapshot.key)
    shown = generate_latest(registry).decode()
    assert {name: shown.count(name) for name in OF_SNAPSHOTS} == dict.fromkeys(OF_SNAPSHOTS, 0)
