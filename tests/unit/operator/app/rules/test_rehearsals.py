"""When a new version is rehearsed, what comes of it, and which pods there are for it. Pure."""

import dataclasses
from typing import Any

import msgspec
import pytest

from tidegate.api.streaming_app import RehearsalStatus, StreamingApp, UpgradePhase
from tidegate.app import actions as do
from tidegate.app.rules.plan import decide
from tidegate.cache.process_state import ProcessState, Refusal
from tidegate.engine.rules.actions import EnsureAccess, RemoveFinalizer
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.rehearsal_protocol import RehearsalEnd, RehearsalResult
from tidegate_spark.contract.snapshot_protocol import SnapshotReport, SnapshotState
from tidegate_testing.observations import NOW, app_with, deleted, driver_of, observe, running_driver, waiting
from tidegate_testing.plans import acts, settled, status_of, verdict_of
from tidegate_testing.rehearsals import (
    ASKED,
    FAILED,
    PASSED,
    POD,
    config_of,
    created,
    ended_pod,
    old_runs,
    pod_of,
    rehearsing,
    texts,
)
from tidegate_testing.upgrades import (
    COPY,
    IMAGE,
    A,
    B,
    C,
    edited,
    events,
    index_of,
    launch_of,
    old_app,
    order_of,
    record,
    runs,
    under_test,
)

READY = SnapshotReport(COPY, SnapshotState.READY)
ASLEEP = "spec.suspend"


def rehearsal(plan: do.Plan) -> RehearsalStatus:
    found = record(plan).rehearsal
    assert found is not None
    return found


# --- it begins -------------------------------------------------------------------------------------------------------


def test_it_begins_when_the_copy_is_complete_and_the_intent_is_written_before_there_is_a_pod() -> None:
    app = under_test(UpgradePhase.COPYING, ASKED)
    plan = decide(observe(app, **runs(app_with({IMAGE: A}), 9, READY)), NOW)
    assert record(plan).phase is UpgradePhase.REHEARSING
    assert rehearsal(plan).start_time is not None
    assert index_of(plan, do.WriteStatus) < index_of(plan, do.CreateRehearsal)
    # The driver is well, and runs as the account that an earlier operator made: the rehearsal needs its own.
    assert index_of(plan, EnsureAccess) < index_of(plan, do.CreateRehearsal)
    assert not acts(plan, do.DeleteDriver)
    assert "UpgradeRehearsing" in events(plan)


def test_nobody_who_did_not_ask_gets_one() -> None:
    app = under_test(UpgradePhase.COPYING)
    plan = decide(observe(app, **runs(app_with({IMAGE: A}), 9, READY)), NOW)
    assert (record(plan).phase, record(plan).rehearsal) == (UpgradePhase.STOPPING, None)
    assert not acts(plan, do.CreateRehearsal)


def test_its_process_is_told_the_new_version_the_copy_and_a_place_of_its_own() -> None:
    manifest = created(decide(observe(rehearsing(), **old_runs()), NOW))
    (container,) = manifest["spec"]["containers"]
    config = config_of(manifest)
    assert (manifest["metadata"]["name"], container["image"]) == (POD, B)
    assert config.storage.uri == f"s3://streams/apps/shop/orders/rehearsals/{COPY}"
    assert config.start_from is not None
    assert (config.start_from.snapshot, config.start_from.storage.uri) == (COPY, "s3://streams/apps/shop/orders")
    assert config.rehearsal is not None
    assert (config.rehearsal.batches, config.rehearsal.timeout_seconds) == (3, 300)


def test_the_application_is_not_ready_and_not_stalled_meanwhile() -> None:
    app = rehearsing()
    plan = decide(observe(app, **old_runs(), rehearsals=(pod_of(app),)), NOW)
    assert verdict_of(plan)[1:] == ("Reconciling", "UpgradeRehearsing")
    assert not acts(plan, do.DeleteDriver, do.CreateRehearsal, do.DeleteRehearsal)


@pytest.mark.parametrize("why", ["no driver", "no answer"])
def test_without_a_copy_there_is_none_and_it_is_said(why: str) -> None:
    if why == "no driver":
        plan = decide(observe(edited(old_app(), {IMAGE: B, **ASKED})), NOW)
    else:
        app = under_test(UpgradePhase.COPYING, ASKED)
        plan = decide(observe(app, driver=running_driver(app_with({IMAGE: A}))), NOW + 100)
    assert record(plan).phase in (UpgradePhase.STOPPING, UpgradePhase.GATE)
    assert (rehearsal(plan).result, rehearsal(plan).cause) == ("Inconclusive", "NoCopy")
    assert "RehearsalInconclusive" in events(plan)
    assert not acts(plan, do.CreateRehearsal)


@pytest.mark.parametrize(
    ("change", "driver", "why"),
    [
        ({}, {}, "agent of the previous version takes no orders, or does not answer"),
        ({}, {"running": False}, "previous version does not run"),
        ({}, {"delete_by": NOW + 5}, "previous version does not run"),
        ({"upgrade.mode": "LastState"}, {}, "makes no rollback snapshot"),
    ],
)
def test_where_nothing_is_copied_it_is_said_why(change: dict[str, Any], driver: dict[str, Any], why: str) -> None:
    app = edited(old_app(), {IMAGE: B, **ASKED, **change})
    plan = decide(observe(app, driver=running_driver(old_app(), **driver)), NOW)
    assert (record(plan).phase, rehearsal(plan).cause) == (UpgradePhase.STOPPING, "NoCopy")
    assert why in rehearsal(plan).message


def test_a_version_that_takes_the_place_of_one_under_test_is_not_rehearsed() -> None:
    given_up_on = under_test(UpgradePhase.FAILED)
    app = edited(given_up_on, {IMAGE: C, **ASKED})
    plan = decide(observe(app, **runs(given_up_on)), NOW)
    assert record(plan).phase is UpgradePhase.STOPPING
    assert rehearsal(plan).cause == "NoCopy"


# --- what comes of it ------------------------------------------------------------------------------------------------


def test_a_version_that_passed_takes_over() -> None:
    app = rehearsing()
    pod = ended_pod(app, texts(PASSED, Reason.COMPLETED, message="3 batches"), 0)
    plan = decide(observe(app, **old_runs(), rehearsals=(pod,)), NOW)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.STOPPING, "RehearsalPassed")
    assert (rehearsal(plan).result, rehearsal(plan).batches[0].committed) == ("Passed", 3)
    assert {"RehearsalPassed", "UpgradeStopping"} <= set(events(plan))
    assert acts(plan, do.DeleteDriver)
    assert acts(plan, do.DeleteRehearsal)


def test_a_version_that_failed_is_refused_and_the_old_one_runs_on() -> None:
    app = rehearsing()
    pod = ended_pod(app, texts(FAILED, exception="org.Incompatible", message="value schema"))
    o = observe(app, **old_runs(), rehearsals=(pod,))
    plan = decide(o, NOW)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.REFUSED, "RehearsalFailed")
    known = rehearsal(plan)
    assert (known.result, known.cause, known.message) == ("Failed", "StateSchema", "org.Incompatible: value schema")
    assert verdict_of(plan)[1:] == ("Stalled", "UpgradeRefused")
    assert {"RehearsalFailed", "UpgradeRefused"} <= set(events(plan))
    assert not acts(plan, do.DeleteDriver)
    later = dataclasses.replace(settled(o), rehearsals=())
    for _ in range(4):
        again = decide(later, NOW)
        assert not acts(again, do.DeleteDriver, do.CreateRehearsal)
        later = settled(later)


def refused() -> StreamingApp:
    return under_test(
        UpgradePhase.REFUSED,
        ASKED,
        reason="RehearsalFailed",
        rehearsal=RehearsalStatus(result="Failed", cause="PlanIncompatible"),
    )


@pytest.mark.parametrize(
    ("change", "again"),
    [({IMAGE: B, **ASKED}, None), ({IMAGE: B}, UpgradePhase.COPYING), ({IMAGE: C, **ASKED}, UpgradePhase.COPYING)],
    ids=["nothing was changed", "nobody asks for a rehearsal any more", "another version"],
)
def test_what_failed_is_tried_again_when_the_spec_says_something_else(
    change: dict[str, Any], again: UpgradePhase | None
) -> None:
    app = edited(refused(), change)
    old = msgspec.structs.replace(app_with({IMAGE: A}), status=app.status)
    plan = decide(observe(app, **runs(old)), NOW)
    if again is None:
        assert record(plan).number == 1
    else:
        assert (record(plan).phase, record(plan).number, record(plan).rehearsal) == (again, 2, None)


@pytest.mark.parametrize("phase", [UpgradePhase.REFUSED, UpgradePhase.WITHDRAWN])
def test_the_copy_of_an_upgrade_that_was_not_launched_goes_also_if_nothing_was_rehearsed(phase: UpgradePhase) -> None:
    over = under_test(phase, epoch=0)
    if phase is UpgradePhase.WITHDRAWN:
        over = edited(over, {IMAGE: A})
    plan = decide(observe(over, **runs(old_app())), NOW)
    assert (record(plan).phase, record(plan).obsolete) == (phase, (COPY,))
    assert order_of(plan).orders.dispose == (COPY,)


def test_the_copy_of_a_version_that_failed_goes_when_its_pod_is_gone() -> None:
    app = refused()
    old = msgspec.structs.replace(app_with({IMAGE: A}), status=app.status)
    there = decide(observe(app, **runs(old), rehearsals=(ended_pod(app, delete_by=NOW + 9),)), NOW)
    assert COPY not in (record(there).obsolete if acts(there, do.WriteStatus) else ())
    plan = decide(observe(app, **runs(old)), NOW)
    assert COPY in record(plan).obsolete
    assert order_of(plan).orders.dispose == (COPY,)


TOLD: dict[str, tuple[RehearsalEnd | None, Reason, str, str]] = {
    "the plan": (
        RehearsalEnd(RehearsalResult.FAILED, Reason.PLAN_INCOMPATIBLE),
        Reason.QUERY_REFUSED,
        "Failed",
        "PlanIncompatible",
    ),
    "it could not even begin": (None, Reason.APPLICATION_FAILED, "Failed", "StartFailed"),
    "no input": (
        RehearsalEnd(RehearsalResult.INCONCLUSIVE, Reason.NO_INPUT),
        Reason.STOPPED,
        "Inconclusive",
        "NoInput",
    ),
    "a broker": (
        RehearsalEnd(RehearsalResult.INCONCLUSIVE, Reason.DEPENDENCY_UNAVAILABLE),
        Reason.BROKER_UNAVAILABLE,
        "Inconclusive",
        "DependencyUnavailable",
    ),
    "records that are gone": (
        RehearsalEnd(RehearsalResult.INCONCLUSIVE, Reason.SOURCE_DATA_LOST),
        Reason.SOURCE_DATA_LOST,
        "Inconclusive",
        "SourceDataLost",
    ),
    "a word of a newer runtime": (
        RehearsalEnd(RehearsalResult.UNKNOWN, Reason.UNKNOWN),
        Reason.STOPPED,
        "Inconclusive",
        "Unknown",
    ),
    "a reason of a newer runtime": (
        RehearsalEnd(RehearsalResult.FAILED, Reason.UNKNOWN),
        Reason.UNKNOWN,
        "Failed",
        "Unknown",
    ),
    "its memory": (
        RehearsalEnd(RehearsalResult.INCONCLUSIVE, Reason.OUT_OF_MEMORY),
        Reason.DRIVER_CRASHED,
        "Inconclusive",
        "OutOfMemory",
    ),
}


@pytest.mark.parametrize(("end", "reason", "result", "what"), TOLD.values(), ids=TOLD.keys())
def test_its_last_words_are_believed(end: RehearsalEnd | None, reason: Reason, result: str, what: str) -> None:
    app = rehearsing()
    plan = decide(observe(app, **old_runs(), rehearsals=(ended_pod(app, texts(end, reason)),)), NOW)
    assert (rehearsal(plan).result, rehearsal(plan).cause) == (result, what)
    follows = UpgradePhase.REFUSED if result == "Failed" else UpgradePhase.STOPPING
    assert record(plan).phase is follows


UNTOLD: dict[str, tuple[dict[str, Any], str, str]] = {
    "killed for its memory": ({"exit_code": 137, "reason": "OOMKilled"}, "Inconclusive", "OutOfMemory"),
    "no such program in the image": ({"exit_code": 127, "reason": "StartError"}, "Failed", "StartFailed"),
    "ended at its deadline": (
        {"exit_code": 143, "reason": "Error", "fields": {"reason": "DeadlineExceeded"}},
        "Inconclusive",
        "DeadlineExceeded",
    ),
}


@pytest.mark.parametrize(("end", "result", "what"), UNTOLD.values(), ids=UNTOLD.keys())
def test_an_end_without_words_is_named_by_the_kubelets(end: dict[str, Any], result: str, what: str) -> None:
    app = rehearsing()
    pod = dataclasses.replace(ended_pod(app, "", end["exit_code"], end["reason"]), **end.get("fields", {}))
    plan = decide(observe(app, **old_runs(), rehearsals=(pod,)), NOW)
    assert (rehearsal(plan).result, rehearsal(plan).cause) == (result, what)


def silent_ends(app: StreamingApp) -> dict[str, PodRecord]:
    stopped = texts(RehearsalEnd(RehearsalResult.INCONCLUSIVE, Reason.STOPPED), Reason.STOPPED)
    return {
        "evicted": pod_of(app, phase="Failed", running=False, reason="Evicted"),
        "killed": ended_pod(app, "", 137),
        "stopped from outside": ended_pod(app, stopped, 143),
        "gone with its node": ended_pod(app, "", 255, "Unknown"),
    }


@pytest.mark.parametrize("end", ["evicted", "killed", "stopped from outside", "gone with its node"])
def test_an_end_that_says_nothing_is_followed_by_another_attempt(end: str) -> None:
    app = rehearsing()
    pod = silent_ends(app)[end]
    soon = decide(observe(app, **old_runs(), rehearsals=(pod,)), NOW)
    assert not acts(soon, do.DeleteRehearsal)
    assert soon.wake_after is not None
    assert soon.wake_after <= 15
    assert acts(decide(observe(app, **old_runs(), rehearsals=(pod,)), NOW + 15), do.DeleteRehearsal)
    assert acts(decide(observe(app, **old_runs()), NOW + 16), do.CreateRehearsal)
    newer = dataclasses.replace(pod, created_at=NOW + 3)  # by a clock that is ahead
    assert not acts(decide(observe(app, **old_runs(), rehearsals=(newer,)), NOW), do.DeleteRehearsal)


@pytest.mark.parametrize("end", ["killed", "stopped from outside", "gone with its node"])
def test_a_pod_that_ran_and_is_lost_when_the_time_is_over_did_not_lack_room(end: str) -> None:
    app = rehearsing()
    plan = decide(observe(app, **old_runs(), rehearsals=(silent_ends(app)[end],)), NOW + 300)
    assert (record(plan).phase, rehearsal(plan).cause) == (UpgradePhase.STOPPING, "Stopped")
    assert rehearsal(plan).message.startswith("Pod orders-rehearsal-1 was lost before it had a result")


def test_an_image_that_is_not_there_fails_after_some_patience() -> None:
    app = rehearsing()
    pod = pod_of(app, phase="Pending", running=False, start_time=0, waiting=waiting("ErrImagePull"))
    first = decide(observe(app, **old_runs(), rehearsals=(pod,)), NOW)
    assert not acts(first, do.DeleteDriver)
    assert first.wake_after is not None
    plan = decide(observe(app, **old_runs(), rehearsals=(pod,)), NOW + 120)
    assert (rehearsal(plan).result, rehearsal(plan).cause) == ("Failed", "StartFailed")


def test_a_pod_that_came_late_has_all_the_patience_until_its_image_fails() -> None:
    """The one before was evicted, or none was admitted, until the patience was over: one pull that fails is no end."""
    app, now = rehearsing(), NOW + 150
    pod = pod_of(app, phase="Pending", running=False, start_time=0, created_at=now, waiting=waiting("ErrImagePull"))
    for seconds in (1, 119):
        meanwhile = decide(observe(app, **old_runs(), rehearsals=(pod,)), now + seconds)
        assert verdict_of(meanwhile)[1:] == ("Reconciling", "UpgradeRehearsing")
        assert meanwhile.wake_after is not None
        assert meanwhile.wake_after <= 120 - seconds
    plan = decide(observe(app, **old_runs(), rehearsals=(pod,)), now + 120)
    assert (rehearsal(plan).result, rehearsal(plan).cause) == ("Failed", "StartFailed")


def test_a_version_whose_image_is_not_there_fails_also_if_its_time_is_over_a_moment_before_its_patience() -> None:
    """A rehearsal that came to nothing would let the upgrade stop what runs, for a version that cannot start."""
    app = rehearsing()
    created = NOW + 250  # of the rehearsal's 300 seconds, and the pod has 120 of its own
    pod = pod_of(app, phase="Pending", running=False, start_time=0, created_at=created, waiting=waiting("ErrImagePull"))
    meanwhile = decide(observe(app, **old_runs(), rehearsals=(pod,)), NOW + 301)
    assert verdict_of(meanwhile)[1:] == ("Reconciling", "UpgradeRehearsing")
    assert meanwhile.wake_after is not None
    plan = decide(observe(app, **old_runs(), rehearsals=(pod,)), created + 120)
    assert (rehearsal(plan).result, rehearsal(plan).cause) == ("Failed", "StartFailed")


def test_a_pod_has_its_patience_from_when_it_has_a_node() -> None:
    app, scheduled = rehearsing(), NOW + 100
    fields = {"created_at": NOW, "scheduled_at": scheduled, "waiting": waiting("ErrImagePull")}
    pod = pod_of(app, phase="Pending", running=False, start_time=0, **fields)
    assert not acts(decide(observe(app, **old_runs(), rehearsals=(pod,)), scheduled + 119), do.DeleteDriver)
    plan = decide(observe(app, **old_runs(), rehearsals=(pod,)), scheduled + 120)
    assert (rehearsal(plan).result, rehearsal(plan).cause) == ("Failed", "StartFailed")


def test_a_pod_that_finds_no_node_says_nothing_of_the_version() -> None:
    app = rehearsing()
    pod = pod_of(app, phase="Pending", running=False, start_time=0, unschedulable="0/3 nodes are available.")
    assert not acts(decide(observe(app, **old_runs(), rehearsals=(pod,)), NOW + 280), do.DeleteDriver)
    plan = decide(observe(app, **old_runs(), rehearsals=(pod,)), NOW + 300)
    assert (record(plan).phase, rehearsal(plan).cause) == (UpgradePhase.STOPPING, "NoRoom")
    assert "spec.upgrade.rehearsal.resources" in rehearsal(plan).message


def test_a_pod_that_the_api_server_refuses_is_tried_again_and_given_up_in_the_end() -> None:
    app = rehearsing()
    refusal = Refusal(POD, "x", 1, Reason.LAUNCH_REFUSED, "exceeded quota: small", NOW, 1)
    memory = ProcessState(refusal=refusal, status_written_at=NOW - 3600)
    soon = decide(observe(app, **old_runs(), memory=memory), NOW + 1)
    assert not acts(soon, do.CreateRehearsal)
    assert soon.wake_after == pytest.approx(4)
    assert acts(decide(observe(app, **old_runs(), memory=memory), NOW + 6), do.CreateRehearsal)
    plan = decide(observe(app, **old_runs(), memory=memory), NOW + 300)
    assert (rehearsal(plan).result, rehearsal(plan).cause) == ("Inconclusive", "NoRoom")
    assert "exceeded quota: small" in rehearsal(plan).message


def test_a_process_that_has_no_end_is_not_waited_for_for_ever() -> None:
    app = rehearsing()
    pod = pod_of(app)
    assert not acts(decide(observe(app, **old_runs(), rehearsals=(pod,)), NOW + 600), do.DeleteRehearsal)
    plan = decide(observe(app, **old_runs(), rehearsals=(pod,)), NOW + 660)
    assert rehearsal(plan).cause == "DeadlineExceeded"
    assert acts(plan, do.DeleteRehearsal)


# --- somebody does something else meanwhile --------------------------------------------------------------------------


def test_another_edit_ends_it_and_begins_anew_with_a_copy() -> None:
    app = rehearsing()
    again = edited(app, {IMAGE: C, **ASKED})
    plan = decide(observe(again, **old_runs(), rehearsals=(pod_of(app),)), NOW)
    assert (record(plan).phase, record(plan).number, record(plan).rehearsal) == (UpgradePhase.COPYING, 2, None)
    assert COPY in record(plan).obsolete
    assert acts(plan, do.DeleteRehearsal)
    assert not acts(plan, do.CreateRehearsal)


def test_a_copy_is_not_removed_while_something_rehearses_on_it() -> None:
    app = rehearsing()
    again = edited(app, {IMAGE: C, **ASKED})
    plan = decide(observe(again, **old_runs(), rehearsals=(pod_of(app, delete_by=NOW + 30),)), NOW)
    assert all(COPY not in order.orders.dispose for order in plan.actions if isinstance(order, do.OrderSnapshots))


def test_changing_the_spec_back_ends_it() -> None:
    app = rehearsing()
    back = edited(app, {IMAGE: A, **ASKED})
    plan = decide(observe(back, **old_runs(), rehearsals=(pod_of(app),)), NOW)
    assert record(plan).phase is UpgradePhase.WITHDRAWN
    assert acts(plan, do.DeleteRehearsal)
    assert not acts(plan, do.DeleteDriver)


def test_asking_for_none_any_more_lets_the_upgrade_go_on() -> None:
    app = rehearsing()
    unasked = edited(app, {IMAGE: B})
    plan = decide(observe(unasked, **old_runs(), rehearsals=(pod_of(app),)), NOW)
    assert (record(plan).phase, rehearsal(plan).cause) == (UpgradePhase.STOPPING, "Stopped")
    assert acts(plan, do.DeleteRehearsal)


def test_a_suspended_application_has_none_and_it_begins_anew_when_that_goes_on() -> None:
    app = rehearsing()
    asleep = edited(app, {IMAGE: B, **ASKED, "suspend": True})
    o = observe(asleep, **old_runs(), rehearsals=(pod_of(app),))
    plan = decide(o, NOW)
    assert (record(plan).phase, rehearsal(plan).start_time) == (UpgradePhase.REHEARSING, None)
    assert acts(plan, do.DeleteRehearsal)
    assert acts(plan, do.DeleteDriver)
    awake = msgspec.structs.replace(settled(o).app, spec=msgspec.structs.replace(asleep.spec, suspend=False))
    begun = decide(observe(awake, **old_runs()), NOW + 9000)
    assert rehearsal(begun).start_time is not None
    assert acts(begun, do.CreateRehearsal)


def test_the_old_version_comes_back_first_if_it_is_lost() -> None:
    plan = decide(observe(rehearsing()), NOW)
    assert not acts(plan, do.CreateRehearsal)
    assert launch_of(plan).rehearsal is None
    (create,) = [action for action in plan.actions if isinstance(action, do.CreateDriver)]
    assert create.manifest["spec"]["containers"][0]["image"] == A


def test_a_deleted_application_goes_without_one() -> None:
    app = deleted(rehearsing())
    first = decide(observe(app, rehearsals=(pod_of(app),)), NOW)
    assert acts(first, do.DeleteRehearsal)
    assert not acts(first, RemoveFinalizer)
    going = decide(observe(app, rehearsals=(pod_of(app, delete_by=NOW + 30),)), NOW)
    assert not acts(going, RemoveFinalizer)
    assert acts(decide(observe(app), NOW), RemoveFinalizer)


def test_the_pod_of_another_application_of_that_name_makes_room_first() -> None:
    app = rehearsing()
    stranger = pod_of(app, app_uid="u-0")
    plan = decide(observe(app, **old_runs(), rehearsals=(stranger,)), NOW)
    assert acts(plan, do.DeleteRehearsal)
    assert not acts(plan, do.CreateRehearsal)


def test_no_pod_of_a_rehearsal_is_taken_for_the_driver() -> None:
    app = rehearsing()
    o = observe(app, driver=driver_of(app_with({IMAGE: A})), rehearsals=(pod_of(app),))
    assert verdict_of(decide(o, NOW))[0] == "Starting"
    assert status_of(decide(o, NOW)).epoch == 1
