"""What is said of an edit of ``state.partitions`` from the edit on, in whatever state the driver is. Pure."""

from typing import Any

import msgspec
import pytest

from tidegate.api.streaming_app import Condition, Phase, RepartitionStatus, StartedFrom, StreamingApp, UpgradePhase
from tidegate.app.observation import Observation
from tidegate.app.rules.plan import decide
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import NOW, app_with, ended_with, launched, observe, running_driver
from tidegate_testing.plans import status_of, written
from tidegate_testing.upgrades import (
    IMAGE,
    A,
    B,
    edited,
    events,
    old_app,
    runs,
    stable,
    under_test,
    upgrading,
)

PARTITIONS = "state.partitions"
KEPT = "StatePartitionsKept"
WAITS = "keeps its 4 partitions until the running version is stable; then it is repartitioned to 8"
EIGHT: dict[str, Any] = {IMAGE: B, PARTITIONS: 8}


def in_four(app: StreamingApp, **fields: Any) -> StreamingApp:
    return msgspec.structs.replace(app, status=msgspec.structs.replace(app.status, state_partitions=4, **fields))


def asking(app: StreamingApp, change: dict[str, Any]) -> StreamingApp:
    return edited(app, change, generation=app.metadata.generation + 1)


def at_gate(**fields: Any) -> StreamingApp:
    return in_four(under_test(), batch=9, **fields)


def first(**fields: Any) -> StreamingApp:
    """Return the first version, which has committed some batches and is not stable yet."""
    return in_four(launched(app_with(), phase=Phase.RUNNING), batch=3, **fields)


def ready(o: Observation) -> Condition:
    found = status_of(decide(o, NOW)).condition("Ready")
    assert found is not None
    return found


def starts(app: StreamingApp) -> PodRecord:
    return running_driver(app, ready=False)


def crashed(app: StreamingApp) -> PodRecord:
    down = {"running": False, "ready": False, "restarts": 3}
    return running_driver(app, ended=ended_with(Reason.MAIN_NOT_FOUND, 1), **down)


def exhausted(app: StreamingApp) -> PodRecord:
    return running_driver(app, running=False, ready=False, ended=ended_with(Reason.RESTART_BUDGET_EXHAUSTED, 0))


# --- what has to wait ---


def test_at_the_gate_a_number_that_waits_is_named_while_the_new_driver_starts() -> None:
    gate = at_gate(phase=Phase.STARTING)
    o = observe(asking(gate, EIGHT), driver=starts(gate))
    condition = ready(o)
    assert (condition.reason, condition.status) == ("DriverStarting", "False")
    assert WAITS in condition.message
    assert "continues if the repartition fails" in condition.message  # which is why
    assert KEPT in events(decide(o, NOW))


def test_it_is_named_as_well_before_there_is_a_pod_of_the_new_driver_and_while_the_old_one_stops() -> None:
    stopping = in_four(under_test(UpgradePhase.STOPPING), batch=9)
    going = running_driver(old_app(), delete_by=NOW + 30)
    for o in (observe(asking(stopping, EIGHT)), observe(asking(stopping, EIGHT), driver=going)):
        assert WAITS in ready(o).message
        assert KEPT in events(decide(o, NOW))


def test_it_is_named_while_the_first_version_starts_again() -> None:
    app = first(phase=Phase.STARTING)
    assert WAITS in ready(observe(asking(app, {PARTITIONS: 8}), driver=starts(app))).message


@pytest.mark.parametrize("end", [crashed, exhausted])
def test_of_one_that_has_failed_it_is_named_with_what_failed_first(end: Any) -> None:
    app = first(phase=Phase.FAILED)
    o = observe(asking(app, {PARTITIONS: 8}), driver=end(app))
    condition = ready(o)
    assert status_of(decide(o, NOW)).phase is Phase.FAILED
    assert condition.reason != KEPT  # what failed is what matters
    assert (WAITS in condition.message, "Fix the failure first" in condition.message) == (True, True)


def test_of_one_that_failed_for_good_and_whose_pod_is_gone_it_is_said_once_and_about_the_newest_edit() -> None:
    app = first(phase=Phase.FAILED)
    o = observe(asking(app, {PARTITIONS: 8}), driver=exhausted(app))
    said = [ready(o).message]
    known = written(o)
    for number in (8, 8, 16, 4):
        known = asking(known, {PARTITIONS: number})
        said.append(ready(observe(known)).message)
        known = written(observe(known))
    assert said[1] == said[2] == said[0]
    assert said[3] == said[0].replace("to 8", "to 16")
    assert "partitions" not in said[4]
    assert said[0].startswith(said[4])


def test_a_suspended_one_that_was_never_stable_says_that_it_has_to_go_on_for_it() -> None:
    app = first(phase=Phase.SUSPENDED)
    o = observe(asking(app, {PARTITIONS: 8, "suspend": True}))
    condition = ready(o)
    assert (condition.reason, condition.status) == ("Suspended", "True")
    assert (WAITS in condition.message, "set spec.suspend to false" in condition.message) == (True, True)


def test_while_a_rollback_fills_its_lineage_it_is_named() -> None:
    rolled_back = at_gate(phase=Phase.STARTING)
    began = StartedFrom(snapshot_name="up", id="up", app_uid="u1", lineage=1, uri="s3://streams", snapshot_lineage=1)
    status = msgspec.structs.replace(rolled_back.status, start_from=began)
    rolling = upgrading(
        msgspec.structs.replace(rolled_back, status=status), app_with({IMAGE: A}), UpgradePhase.ROLLING_BACK, lineage=1
    )
    driver = starts(app_with({IMAGE: A}, status=rolling.status))
    o = observe(asking(rolling, EIGHT), driver=driver)
    assert WAITS in ready(o).message


# --- what takes effect ---


def test_of_a_stable_version_it_is_said_that_it_is_copied_stopped_and_repartitioned() -> None:
    app = in_four(old_app(), batch=9)
    message = ready(observe(asking(app, {IMAGE: A, PARTITIONS: 8}), **runs(app, 9))).message
    assert "is copied while the previous version runs" in message
    assert "a pod repartitions the state from 4 to 8 partitions" in message


def test_the_same_is_said_while_the_stable_versions_driver_starts() -> None:
    app = in_four(old_app(), batch=9, phase=Phase.STARTING)
    condition = ready(observe(asking(app, {IMAGE: A, PARTITIONS: 8}), driver=starts(app)))
    assert condition.reason == "DriverStarting"
    assert "repartitions the state from 4 to 8 partitions" in condition.message


def test_of_a_stable_version_that_has_failed_it_is_said_that_its_state_is_repartitioned_before_the_next_start() -> None:
    app = in_four(old_app(), batch=9, phase=Phase.FAILED)
    condition = ready(observe(asking(app, {IMAGE: A, PARTITIONS: 8}), driver=crashed(app)))
    assert condition.reason == "SpecChanged"
    assert "repartitions the state from 4 to 8 partitions, and the changed spec starts" in condition.message


def test_of_a_suspended_application_it_is_said_what_it_starts_from_when_it_goes_on() -> None:
    app = in_four(stable(launched(app_with({IMAGE: A}), phase=Phase.SUSPENDED)), batch=9)
    condition = ready(observe(asking(app, {IMAGE: A, PARTITIONS: 8, "suspend": True})))
    assert (condition.reason, condition.status) == ("Suspended", "True")
    assert (
        "When the application continues, its state is first repartitioned from 4 to 8 partitions" in condition.message
    )


@pytest.mark.parametrize("phase", [UpgradePhase.REFUSED, UpgradePhase.ROLLED_BACK])
def test_a_suspended_one_does_not_announce_what_will_not_be_tried_again(phase: UpgradePhase) -> None:
    refused = RepartitionStatus(partitions=8, previous_partitions=4, result="Failed")
    app = in_four(under_test(phase, {PARTITIONS: 8, "suspend": True}, repartition=refused), batch=9)
    assert "divided" not in ready(observe(app)).message


# --- what has no effect ---


def test_state_that_keeps_another_number_than_the_spec_asks_for_is_named_for_as_long_as_that_is_so() -> None:
    app = in_four(stable(launched(app_with({PARTITIONS: 8}), phase=Phase.RUNNING)), batch=9)
    condition = ready(observe(app, **runs(app, 9)))
    assert (condition.reason, condition.status) == ("Running", "True")
    assert "has 4 partitions, and spec.state.partitions is 8" in condition.message
    assert "set the field to 4, and to 8 when the application is stable" in condition.message


def test_of_state_in_the_number_of_the_spec_nothing_is_said() -> None:
    app = in_four(stable(launched(app_with({PARTITIONS: 4}), phase=Phase.RUNNING)), batch=9)
    assert "partitions" not in ready(observe(app, **runs(app, 9))).message
