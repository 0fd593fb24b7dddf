"""What becomes of the hold of an application that is deleted before it has begun with its snapshot. Pure."""

import dataclasses

import msgspec

from tidegate.api.streaming_app import StartedFrom, StreamingApp
from tidegate.app.actions import CreateOriginRelease, DeleteOriginRelease
from tidegate.app.observation import Observation
from tidegate.app.rules.plan import decide
from tidegate.cache.process_state import ProcessState, Refusal
from tidegate.engine.rules.actions import PublishEvent, RemoveFinalizer
from tidegate.engine.rules.pauses import PATIENCE
from tidegate.pods.records.record import Exit, PodRecord
from tidegate_spark.contract.protocol import CONFIG_VARIABLE, DriverConfig, from_json
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import ORDERS_VARIABLE, ReleaseOrder, SnapshotOrders
from tidegate_testing.observations import (
    NOW,
    app_with,
    deleted,
    driver_of,
    ended_with,
    launched,
    observe,
    running_driver,
)
from tidegate_testing.plans import settled

FORK = app_with({"startFrom": {"snapshotRef": {"name": "nightly"}}}, name="variant", uid="u-9")
RECORD = StartedFrom(snapshot_name="nightly", id="nightly-1", app_uid="u-0", lineage=1, uri="s3://far/apps/shop/orders")


def doomed(*, begun: bool = False) -> StreamingApp:
    return deleted(launched(FORK, start_from=msgspec.structs.replace(RECORD, started=begun)))


def pod(**fields: object) -> PodRecord:
    known = {"name": "variant-release", "role": "snapshot", "phase": "Running", "running": True}
    return dataclasses.replace(driver_of(doomed()), **{**known, **fields})  # type: ignore[arg-type] # names checked at run time


def names(o: Observation) -> list[str]:
    return [type(action).__name__ for action in decide(o, NOW).actions]


def test_it_releases_it_where_the_snapshot_is_when_nothing_runs_any_more() -> None:
    assert "CreateOriginRelease" not in names(observe(doomed(), driver=running_driver(doomed())))
    (create,) = [a for a in decide(observe(doomed()), NOW).actions if isinstance(a, CreateOriginRelease)]
    (container,) = create.manifest["spec"]["containers"]
    env = {item["name"]: item["value"] for item in container["env"] if "value" in item}
    config = from_json(DriverConfig, env[CONFIG_VARIABLE])
    assert (config.storage.uri, config.uid) == ("s3://far/apps/shop/orders", "u-9")
    orders = from_json(SnapshotOrders, env[ORDERS_VARIABLE])
    assert orders == SnapshotOrders(release=(ReleaseOrder("nightly-1", "fork-u-9"),))


def test_it_releases_it_with_what_it_reached_the_snapshot() -> None:
    far = msgspec.structs.replace(RECORD, credentials_secret_name="far-keys")
    app = deleted(launched(FORK, start_from=far))
    (create,) = [a for a in decide(observe(app), NOW).actions if isinstance(a, CreateOriginRelease)]
    assert [v["secret"]["secretName"] for v in create.manifest["spec"]["volumes"] if "secret" in v] == ["far-keys"]


def test_what_is_its_own_is_not_released_elsewhere() -> None:
    own = msgspec.structs.replace(RECORD, app_uid="u-9")
    plan = decide(observe(deleted(launched(FORK, start_from=own))), NOW)
    assert any(isinstance(action, RemoveFinalizer) for action in plan.actions)


def test_one_that_has_begun_or_never_was_launched_holds_nothing() -> None:
    for app in (doomed(begun=True), deleted(FORK), deleted(launched(app_with()))):
        plan = decide(observe(app), NOW)
        assert any(isinstance(action, RemoveFinalizer) for action in plan.actions)
        assert not any(isinstance(action, PublishEvent) for action in plan.actions)


def test_it_stays_until_that_is_done_and_the_pod_goes_with_it() -> None:
    at_work = observe(doomed(), releasing=pod())
    plan = decide(at_work, NOW)
    assert (plan.reason, plan.wake_after) == ("OriginReleasing", PATIENCE)
    assert decide(settled(at_work), NOW).actions == ()
    done = decide(observe(doomed(), releasing=pod(phase="Succeeded", running=False)), NOW)
    assert [type(a) for a in done.actions if isinstance(a, DeleteOriginRelease | RemoveFinalizer | PublishEvent)] == [
        DeleteOriginRelease,
        RemoveFinalizer,
    ]


def test_a_storage_that_is_gone_does_not_keep_the_application() -> None:
    failing = pod(ended=ended_with(Reason.STORAGE_UNAVAILABLE, 75), ready=False)
    plan = decide(observe(doomed(), releasing=failing), NOW)
    assert (plan.reason, plan.wake_after) == ("OriginReleasing", PATIENCE)
    given_up = decide(observe(doomed(), releasing=failing), NOW + PATIENCE)
    events = [action for action in given_up.actions if isinstance(action, PublishEvent)]
    assert [event.reason for event in events] == ["OriginStillHeld"]
    assert "release-holders=fork-u-9" in events[0].message
    assert any(isinstance(action, RemoveFinalizer) for action in given_up.actions)


def test_a_pod_that_was_asked_to_stop_has_not_failed() -> None:
    asked = pod(ended=Exit(143, "Error", '{"snapshots":[]}', NOW - 5), ready=False)
    at_work = decide(observe(doomed(), releasing=pod()), NOW)
    assert decide(observe(doomed(), releasing=asked), NOW).message == at_work.message


def test_a_clock_that_is_behind_the_api_servers_gives_nothing_up() -> None:
    assert "CreateOriginRelease" in [type(a).__name__ for a in decide(observe(doomed()), NOW - 2).actions]


def test_a_namespace_that_goes_takes_no_pod_and_the_application_goes() -> None:
    refusal = Refusal("variant-release", "", 1, Reason.NAMESPACE_TERMINATING, "", NOW, 1)
    plan = decide(observe(doomed(), memory=ProcessState(refusal=refusal)), NOW)
    assert any(isinstance(action, RemoveFinalizer) for action in plan.actions)


def test_a_pod_that_the_api_server_refuses_is_tried_again() -> None:
    refusal = Refusal("variant-release", "", 1, Reason.LAUNCH_REFUSED, "quota", NOW, 1)
    o = observe(doomed(), memory=ProcessState(refusal=refusal, status_written_at=NOW))
    assert decide(o, NOW).wake_after == 5.0
    assert "CreateOriginRelease" in [type(a).__name__ for a in decide(o, NOW + 5).actions]
