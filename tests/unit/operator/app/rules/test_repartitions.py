"""A change of ``state.partitions``, from the copy to the launch on the new lineage. Pure."""

import dataclasses
from typing import Any

import msgspec
import pytest

from tidegate.api.spec_hash import spec_hash, version_of, with_version
from tidegate.api.streaming_app import (
    Condition,
    Phase,
    RepartitionProgress,
    RepartitionStatus,
    SnapshotBatch,
    StreamingApp,
    UpgradeMode,
    UpgradePhase,
)
from tidegate.app import actions as do
from tidegate.app.actions import Plan
from tidegate.app.builders.references import Reference
from tidegate.app.observation import CheckedReferences
from tidegate.app.rules.plan import decide
from tidegate.app.rules.upgrade.copying import PATIENCE
from tidegate.app.rules.upgrade.repartition.pod import ROOM_PATIENCE
from tidegate.cache.process_state import PodProgress, ProcessState, Refusal
from tidegate.engine.rules.actions import PublishEvent
from tidegate.pods.records.record import Exit, PodRecord, Waiting
from tidegate_spark.contract.protocol import EXPECTS_STATE, Termination, from_json, to_json
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.entry import Place
from tidegate_spark.contract.reasons.registry import entry_of
from tidegate_spark.contract.repartition_protocol import (
    REPARTITION_VARIABLE,
    Repartition,
    RepartitionedQuery,
    RepartitionEnd,
)
from tidegate_spark.contract.snapshot_protocol import QueryPin, SnapshotReport, SnapshotState, StateFacts
from tidegate_testing.observations import (
    NOW,
    app_with,
    driver_of,
    executor_of,
    launched,
    observe,
    running_driver,
    waiting,
)
from tidegate_testing.plans import status_of, written
from tidegate_testing.rehearsals import config_of
from tidegate_testing.upgrades import (
    BEGUN,
    COPY,
    IMAGE,
    PIN,
    A,
    edited,
    events,
    launch_of,
    of_earlier_operator,
    old_app,
    record,
    runs,
    stable,
    stable_of,
    under_test,
    version_launched,
)

EIGHT: dict[str, Any] = {"state.partitions": 8}
IN_FOUR = StateFacts("RocksDB", 4, ("stateStoreSave",))
POD = "orders-repartition-2"
WANTED = RepartitionStatus(partitions=8, previous_partitions=4)
BEGUN_ATTEMPT = RepartitionStatus(
    partitions=8, previous_partitions=4, snapshot_id=PIN, epoch=2, lineage=2, attempts=1, start_time=BEGUN
)

SEEN_ATTEMPT = msgspec.structs.replace(BEGUN_ATTEMPT, pod_uid="r-1")


def in_four(app: StreamingApp, **fields: Any) -> StreamingApp:
    status = msgspec.structs.replace(app.status, state_partitions=4, **fields)
    return msgspec.structs.replace(app, status=status)


def between(phase: UpgradePhase, repartition: RepartitionStatus = WANTED, **fields: Any) -> StreamingApp:
    """Return version B, with 8 partitions, whose version before has stopped; its last epoch is 2."""
    return in_four(under_test(phase, EIGHT, repartition=repartition, epoch=0, **fields))


def repartitioning(batch: int | None = None, **fields: Any) -> StreamingApp:
    return in_four(between(UpgradePhase.REPARTITIONING, BEGUN_ATTEMPT, last_lineage=2, **fields), batch=batch)


def pod_of(app: StreamingApp, **fields: Any) -> PodRecord:
    up = {"phase": "Running", "running": True, "start_time": NOW - 5}
    return driver_of(app, **{"name": POD, "role": "repartition", "uid": "r-1", "epoch": 2, **up, **fields})


def ended(app: StreamingApp, end: RepartitionEnd, reason: Reason = Reason.APPLICATION_FAILED) -> PodRecord:
    termination = to_json(Termination(reason, "Spark says no.", 2, repartition=end))
    code = 0 if reason is Reason.COMPLETED else 1
    phase = "Failed" if code else "Succeeded"
    return pod_of(app, phase=phase, running=False, ended=Exit(code, "Error", termination, NOW - 1))


def copied(app: StreamingApp, state: StateFacts | None, spark: str = "4.2.1") -> Plan:
    report = SnapshotReport(COPY, SnapshotState.READY, spark_version=spark, queries={"main": QueryPin(9, "", state)})
    copying = in_four(under_test(UpgradePhase.COPYING, EIGHT, repartition=WANTED))
    return decide(observe(copying, **runs(app, 9, report)), NOW)


def condition(plan: Plan, kind: str) -> Condition:
    found = status_of(plan).condition(kind)
    assert found is not None
    return found


def created(plan: Plan) -> Repartition:
    (create,) = [action for action in plan.actions if isinstance(action, do.CreateRepartition)]
    (container,) = create.manifest["spec"]["containers"]
    (text,) = [each["value"] for each in container["env"] if each["name"] == REPARTITION_VARIABLE]
    return from_json(Repartition, text)


# --- before anything is stopped ---


@pytest.mark.parametrize("mode", [UpgradeMode.SNAPSHOT, UpgradeMode.LAST_STATE])
def test_another_number_of_partitions_is_an_upgrade_that_copies_first_whatever_its_mode(mode: UpgradeMode) -> None:
    app = edited(in_four(old_app()), {**EIGHT, "application.image": "shop/orders:1", "upgrade.mode": mode.value})
    upgrade = record(decide(observe(app, **runs(old_app())), NOW))
    assert (upgrade.phase, upgrade.repartition) == (UpgradePhase.COPYING, WANTED)
    assert upgrade.rollback_snapshot is not None


def test_a_state_that_is_given_up_is_not_repartitioned() -> None:
    app = edited(in_four(old_app()), {**EIGHT, "upgrade.mode": "Stateless"})
    assert record(decide(observe(app, **runs(old_app())), NOW)).repartition is None


@pytest.mark.parametrize(
    ("state", "spark", "reason"),
    [
        (StateFacts("HDFS", 4, ("stateStoreSave",)), "4.2.1", "UnsupportedProvider"),
        (StateFacts("RocksDB", 4, ("globalLimit",)), "4.2.1", "UnsupportedOperator"),
        (StateFacts("RocksDB", 4, ("stateStoreSave",), one_place=True), "4.2.1", "StateInOnePlace"),
        (IN_FOUR, "4.1.2", "SparkTooOld"),
    ],
)
def test_what_can_not_be_repartitioned_is_refused_while_the_old_version_runs(
    state: StateFacts, spark: str, reason: str
) -> None:
    plan = copied(old_app(), state, spark)
    upgrade = record(plan)
    assert (upgrade.phase, upgrade.reason) == (UpgradePhase.REFUSED, reason)
    assert "Nothing was stopped" in upgrade.message
    assert not any(isinstance(action, do.DeleteDriver) for action in plan.actions)
    assert condition(plan, "Stalled").status == "True"


def test_state_that_has_the_number_already_makes_it_an_ordinary_upgrade() -> None:
    upgrade = record(copied(old_app(), StateFacts("RocksDB", 8, ("dedupe",))))
    assert upgrade.repartition is not None
    assert (upgrade.phase, upgrade.repartition.result) == (UpgradePhase.STOPPING, "NotNeeded")


def test_a_runtime_of_before_does_not_tell_and_the_pod_finds_out() -> None:
    upgrade = record(copied(old_app(), None))
    assert (upgrade.phase, upgrade.repartition) == (UpgradePhase.STOPPING, WANTED)


@pytest.mark.parametrize(
    ("seconds", "key", "phase"),
    [
        (PATIENCE, "its own", UpgradePhase.COPYING),
        (PATIENCE / 2, "another", UpgradePhase.COPYING),
        (PATIENCE, "another", UpgradePhase.STOPPING),
    ],
)
def test_a_copy_is_waited_for_unless_its_driver_has_another_key_and_never_takes_the_order(
    seconds: float, key: str, phase: UpgradePhase
) -> None:
    """Its next launch is what it needs, and an edit that brings one; its state is looked at by the pod."""
    app = in_four(under_test(UpgradePhase.COPYING, EIGHT, repartition=WANTED))
    driver = runs(old_app())["driver"]
    if key == "another":
        driver = dataclasses.replace(driver, agent_secret="orders-agent-1-another")
    plan = decide(observe(app, driver=driver), NOW + seconds)
    assert (record(plan).phase, record(plan).repartition) == (phase, WANTED)
    assert any(isinstance(action, do.DeleteDriver) for action in plan.actions) == (phase is UpgradePhase.STOPPING)
    if phase is UpgradePhase.STOPPING:
        assert "another key" in record(plan).message


def test_state_in_other_partitions_than_its_stable_version_asks_for_is_not_repartitioned_because_of_another_image() -> (
    None
):
    kept = in_four(stable(launched(app_with(EIGHT), phase=Phase.RUNNING)), batch=9)
    app = edited(kept, {**EIGHT, "application.image": "shop/orders:2", "restartNonce": 1})
    upgrade = record(decide(observe(app, **runs(kept)), NOW))
    assert (upgrade.phase, upgrade.repartition) == (UpgradePhase.COPYING, None)


def test_state_before_its_first_batch_gets_the_number_that_is_asked_for() -> None:
    first = in_four(launched(app_with(), phase=Phase.RUNNING))
    plan = decide(observe(app_with(EIGHT, status=first.status)), NOW)
    assert (status_of(plan).state_partitions, launch_of(plan).state_partitions) == (8, 8)


# --- between stop and launch ---


def test_when_the_old_driver_is_gone_an_attempt_is_recorded_with_an_epoch_and_a_lineage_of_its_own() -> None:
    plan = decide(observe(between(UpgradePhase.STOPPING)), NOW)
    status, upgrade = status_of(plan), record(plan)
    assert (upgrade.phase, status.epoch, status.lineage) == (UpgradePhase.REPARTITIONING, 3, 1)
    attempt = upgrade.repartition
    assert attempt is not None
    assert (attempt.epoch, attempt.lineage, attempt.snapshot_id, attempt.attempts) == (3, 2, PIN, 1)
    assert not any(isinstance(action, do.CreateDriver) for action in plan.actions)
    order = created(plan)
    assert (order.partitions, order.of_lineage, order.lineage, order.image) == (8, 1, 2, "shop/orders:1")
    kinds = [type(action) for action in plan.actions]
    assert kinds.index(do.WriteStatus) < kinds.index(do.ConfirmDriverGone) < kinds.index(do.CreateRepartition)
    assert "UpgradeRepartitioning" in events(plan)


def test_the_pod_is_told_which_batches_there_are_in_what_it_repartitions() -> None:
    """An older copy of the storage is refused by it, as by a driver: its lineage would hide that it is one."""
    stopped = in_four(between(UpgradePhase.STOPPING), batch=9, batches=(SnapshotBatch(name="main", batch_id=9),))
    (create,) = [a for a in decide(observe(stopped), NOW).actions if isinstance(a, do.CreateRepartition)]
    config = config_of(create.manifest)
    assert (config.lineage, config.expects, config.expects_batches) == (1, EXPECTS_STATE, {"main": 9})


def test_executors_of_a_driver_that_is_not_known_are_removed_only_once_it_was_looked_for() -> None:
    """It may have lost its labels while no operator ran: then it is there, and they are its own."""
    app = repartitioning()
    plan = decide(observe(app, executors=(executor_of(app, 1, epoch=1),), repartitions=(pod_of(app),)), NOW)
    kinds = [type(action) for action in plan.actions]
    assert kinds.index(do.ConfirmDriverGone) < kinds.index(do.DeleteExecutor)


def test_no_state_is_repartitioned_beside_a_pod_that_may_be_its_driver_and_the_attempt_says_why() -> None:
    app = repartitioning()
    refusal = Refusal("orders-driver", "", 3, Reason.POD_NAME_TAKEN, "Delete it.", NOW, 1, holds_end=True)
    o = observe(app, memory=ProcessState(refusal=refusal))
    assert not any(isinstance(action, do.CreateRepartition) for action in decide(o, NOW).actions)
    assert "Delete it." in record(decide(o, NOW + ROOM_PATIENCE + 1)).message


def test_nothing_is_launched_while_the_pod_works() -> None:
    app = repartitioning()
    plan = decide(observe(app, repartitions=(pod_of(app),)), NOW)
    assert not any(isinstance(action, do.CreateDriver | do.CreateRepartition) for action in plan.actions)
    assert condition(plan, "Reconciling").reason == "UpgradeRepartitioning"
    assert POD in condition(plan, "Reconciling").message


def test_the_phase_says_that_state_is_repartitioned_from_when_the_driver_is_gone_until_the_next_one_is_made() -> None:
    stopped, app = between(UpgradePhase.STOPPING), repartitioning()
    assert [status_of(decide(o, NOW)).phase for o in (observe(stopped), observe(app, repartitions=(pod_of(app),)))] == [
        Phase.REPARTITIONING,
        Phase.REPARTITIONING,
    ]
    end = RepartitionEnd(lineage=2, queries={"main": RepartitionedQuery(9, 1000, 4)})
    done = observe(app, repartitions=(ended(app, end, Reason.COMPLETED),))
    assert status_of(decide(done, NOW)).phase is Phase.STARTING


def test_the_old_version_that_goes_on_after_it_was_not_lost() -> None:
    app = repartitioning()
    waiting = written(observe(app, repartitions=(pod_of(app),)))
    assert waiting.status.phase is Phase.REPARTITIONING
    old = msgspec.structs.replace(waiting.status, applied_spec_hash=spec_hash(app_with({IMAGE: A})))
    failed = msgspec.structs.replace(waiting, status=old)
    plan = decide(observe(failed, repartitions=(ended(failed, RepartitionEnd(Reason.SPARK_FAILED)),)), NOW)
    assert version_launched(plan) == old.applied_spec_hash
    (launch,) = [action for action in plan.actions if isinstance(action, do.RecordLaunch)]
    assert not launch.unplanned


@pytest.mark.parametrize(
    ("files", "rows", "message"),
    [(3, 0, "3 of 9 files are copied"), (9, 0, "9 files are copied (pod"), (9, 70, "70 rows")],
)
def test_how_far_the_pod_is_stands_in_the_condition(files: int, rows: int, message: str) -> None:
    app = repartitioning()
    report = SnapshotReport(PIN, SnapshotState.COPYING, files=files, of_files=9, rows=rows)
    memory = ProcessState(repartitioning=PodProgress("r-1/0", report))
    plan = decide(observe(app, repartitions=(pod_of(app),), memory=memory), NOW)
    assert message in condition(plan, "Reconciling").message


@pytest.mark.parametrize(("written", "due"), [(NOW - 61, True), (NOW - 10, False)])
def test_how_far_the_pod_is_is_written_to_the_record_once_a_minute(written: float, due: bool) -> None:
    app = between(UpgradePhase.REPARTITIONING, SEEN_ATTEMPT, last_lineage=2)
    report = SnapshotReport(PIN, SnapshotState.COPYING, files=9, of_files=9, bytes=70, of_bytes=70, rows=5)
    pod = pod_of(app)
    first = status_of(decide(observe(app, repartitions=(pod,)), NOW))
    seen = msgspec.structs.replace(app, status=first)
    memory = ProcessState(repartitioning=PodProgress("r-1/0", report), status_written_at=written)
    plan = decide(observe(seen, repartitions=(pod,), memory=memory), NOW)
    assert any(isinstance(action, do.WriteStatus) for action in plan.actions) is due
    if not due:
        assert plan.wake_after == 50.0
        return
    upgrade = record(plan)
    assert upgrade.repartition is not None
    assert upgrade.repartition.progress == RepartitionProgress(files=9, of_files=9, bytes=70, of_bytes=70, rows=5)
    assert (upgrade.phase, upgrade.phase_start_time) == (UpgradePhase.REPARTITIONING, BEGUN)


def test_progress_goes_with_its_attempt() -> None:
    known = msgspec.structs.replace(SEEN_ATTEMPT, progress=RepartitionProgress(files=3, of_files=9))
    app = between(UpgradePhase.REPARTITIONING, known, last_lineage=2)
    again = record(decide(observe(app), NOW)).repartition
    failed = ended(app, RepartitionEnd(Reason.SPARK_FAILED))
    over = record(decide(observe(app, repartitions=(failed,)), NOW)).repartition
    assert again is not None
    assert over is not None
    assert (again.lineage, again.progress, over.result, over.progress) == (3, None, "Failed", None)


def test_a_lineage_that_is_whole_has_its_partitions_also_if_somebody_wrote_it_into_the_status_before() -> None:
    app = repartitioning()
    app = msgspec.structs.replace(app, status=msgspec.structs.replace(app.status, lineage=2))
    end = RepartitionEnd(lineage=2, rows=1000, queries={"main": RepartitionedQuery(9, 1000, 4)})
    done = written(observe(app, repartitions=(ended(app, end, Reason.COMPLETED),)))
    assert (done.status.lineage, done.status.state_partitions) == (2, 8)
    runs_on = decide(observe(done, driver=running_driver(done, ready=False)), NOW)
    assert "The state has" not in runs_on.message


def test_a_lineage_that_is_whole_is_launched_on_and_the_pin_stays_for_a_rollback() -> None:
    app = repartitioning()
    end = RepartitionEnd(lineage=2, rows=1000, queries={"main": RepartitionedQuery(9, 1000, 4)})
    done = decide(observe(app, repartitions=(ended(app, end, Reason.COMPLETED),)), NOW)
    status, upgrade = status_of(done), record(done)
    assert upgrade.repartition is not None
    assert upgrade.phase is UpgradePhase.GATE
    assert (upgrade.repartition.result, upgrade.repartition.rows) == ("Completed", 1000)
    assert (status.lineage, status.state_partitions, status.epoch) == (2, 8, 3)
    assert upgrade.rollback_snapshot is not None
    assert [(it.name, it.batch_id) for it in upgrade.rollback_snapshot.batches] == [("main", 9)]
    assert upgrade.obsolete == (COPY,)
    config = launch_of(done)
    assert (config.lineage, config.epoch, config.state_partitions, config.pin) == (2, 3, 8, None)
    reported = [each.reason for each in done.actions if isinstance(each, PublishEvent)]
    assert "UpgradeRepartitioned" in reported
    assert "UpgradeStopping" not in reported, "the previous version was told to stop long before"


@pytest.mark.parametrize(
    ("queries", "batch"),
    [
        ({"main": RepartitionedQuery(9, 1000, 4)}, 10),  # of a query that is divided, Spark makes one more
        ({"main": RepartitionedQuery(9, 1000, 4), "plain": RepartitionedQuery(12)}, 12),
        ({"main": RepartitionedQuery(9, 1000, 8)}, 9),  # is in eight already
    ],
)
def test_the_last_batch_that_is_shown_goes_on_where_the_lineage_was_made(
    queries: dict[str, RepartitionedQuery], batch: int
) -> None:
    app = repartitioning(batch=9)
    done = observe(app, repartitions=(ended(app, RepartitionEnd(lineage=2, queries=queries), Reason.COMPLETED),))
    status = status_of(decide(done, NOW))
    assert (status.lineage, status.batch) == (2, batch)
    launched_on = written(done)
    starting = observe(launched_on, driver=running_driver(launched_on, ready=False))
    assert written(starting).status.batch == batch


def test_what_was_seen_of_the_old_lineage_is_in_the_new_one_also_if_the_pods_words_had_no_room_for_it() -> None:
    app = repartitioning(batch=30)
    end = RepartitionEnd(lineage=2, queries={"main": RepartitionedQuery(9, 1000, 4)}, left_out=1)
    done = decide(observe(app, repartitions=(ended(app, end, Reason.COMPLETED),)), NOW)
    assert status_of(done).batch == 30


@pytest.mark.parametrize(
    "what",
    [Reason.SPARK_FAILED, Reason.STATE_DIFFERS, Reason.UNSUPPORTED_PROVIDER],
)
def test_on_a_failure_the_old_version_is_launched_on_the_old_lineage_at_once(what: Reason) -> None:
    app = repartitioning()
    plan = decide(observe(app, repartitions=(ended(app, RepartitionEnd(what)),)), NOW)
    upgrade, config = record(plan), launch_of(plan)
    assert (upgrade.phase, upgrade.reason) == (UpgradePhase.REFUSED, what.value)
    assert (config.lineage, config.state_partitions, config.start_from, config.pin) == (1, 4, None, None)
    assert upgrade.obsolete == (COPY, PIN)
    assert status_of(plan).restarts is None


def test_the_secrets_of_the_last_driver_go_although_the_attempt_took_an_epoch_after_it() -> None:
    app = repartitioning()
    plan = decide(observe(app, repartitions=(ended(app, RepartitionEnd(Reason.SPARK_FAILED)),)), NOW)
    removed = [action.epoch for action in plan.actions if isinstance(action, do.DeleteLaunchSecrets)]
    assert (app.status.epoch, removed) == (2, [1, 2])


@pytest.mark.parametrize("attempts", [1, 2, 3])
def test_a_pod_that_was_lost_is_followed_by_another_lineage_but_not_for_ever(attempts: int) -> None:
    known = msgspec.structs.replace(BEGUN_ATTEMPT, attempts=attempts)
    app = between(UpgradePhase.REPARTITIONING, known, last_lineage=2)
    lost = pod_of(app, phase="Failed", running=False, reason="Evicted")
    upgrade = record(decide(observe(app, repartitions=(lost,)), NOW))
    assert upgrade.repartition is not None
    if attempts < 3:
        assert (upgrade.phase, upgrade.repartition.lineage) == (UpgradePhase.REPARTITIONING, 3)
        assert upgrade.repartition.epoch == app.status.epoch + 1
    else:
        assert (upgrade.phase, upgrade.repartition.result) == (UpgradePhase.REFUSED, "Failed")


def test_a_pod_that_is_being_removed_on_a_node_that_does_not_answer_is_not_waited_for() -> None:
    app = repartitioning()
    going = pod_of(app, delete_by=NOW + 30)
    plan = decide(observe(app, repartitions=(going,)), NOW)
    upgrade = record(plan)
    assert upgrade.repartition is not None
    assert (upgrade.phase, upgrade.repartition.lineage, upgrade.repartition.attempts) == (
        UpgradePhase.REPARTITIONING,
        3,
        2,
    )
    assert created(plan).lineage == 3
    (reported,) = [each for each in plan.actions if isinstance(each, PublishEvent)]
    assert reported.reason == "UpgradeRepartitioning"
    assert reported.message == f"Pod {going.name} was deleted. Attempt 2 of 3 follows, in another pod."


def test_which_pod_an_attempt_has_is_recorded_when_it_is_seen_first() -> None:
    app = repartitioning()
    upgrade = record(decide(observe(app, repartitions=(pod_of(app, phase="Pending", running=False),)), NOW))
    assert upgrade.repartition == msgspec.structs.replace(BEGUN_ATTEMPT, pod_uid="r-1")
    assert (upgrade.phase, upgrade.phase_start_time) == (UpgradePhase.REPARTITIONING, BEGUN)


@pytest.mark.parametrize("seconds", [0, 400])
@pytest.mark.parametrize("deciding", [0.0, 5.0])
def test_a_pod_that_was_seen_and_is_gone_was_lost_and_another_lineage_follows(seconds: float, deciding: float) -> None:
    app = between(UpgradePhase.REPARTITIONING, SEEN_ATTEMPT, last_lineage=2)
    now = NOW + seconds
    plan = decide(observe(app, deciding_since=now - deciding if deciding else 0.0), now)
    upgrade = record(plan)
    assert upgrade.repartition is not None
    assert upgrade.repartition == msgspec.structs.replace(BEGUN_ATTEMPT, epoch=3, lineage=3, attempts=2)
    assert (upgrade.phase, upgrade.reason) == (UpgradePhase.REPARTITIONING, "NoRoom")
    assert f"Pod {POD} was lost" in upgrade.message
    assert created(plan).lineage == 3


def test_the_last_attempts_pod_that_is_gone_has_the_old_version_go_on() -> None:
    known = msgspec.structs.replace(SEEN_ATTEMPT, attempts=3)
    plan = decide(observe(between(UpgradePhase.REPARTITIONING, known, last_lineage=2)), NOW)
    assert record(plan).phase is UpgradePhase.REFUSED
    assert f"Pod {POD} was lost" in record(plan).message
    assert launch_of(plan).lineage == 1


def test_a_pod_of_the_attempts_name_that_is_not_the_one_it_had_is_removed() -> None:
    app = between(UpgradePhase.REPARTITIONING, SEEN_ATTEMPT, last_lineage=2)
    plan = decide(observe(app, repartitions=(pod_of(app, uid="r-2"),)), NOW)
    assert [action.pod.uid for action in plan.actions if isinstance(action, do.DeleteRepartition)] == ["r-2"]
    assert created(plan).lineage == 3


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize(("why", "patience"), [(None, 300.0), (waiting("ErrImagePull", "spark"), 120.0)])
def test_a_pod_that_came_late_has_all_its_time_to_start(why: Waiting | None, patience: float, ends: bool) -> None:
    """No operator ran that would have created it, or a quota admitted none, for longer than a pod is waited for."""
    app, now = in_four(between(UpgradePhase.REPARTITIONING, SEEN_ATTEMPT, last_lineage=2)), NOW + 400
    pod = pod_of(
        app,
        phase="Pending",
        running=False,
        start_time=0,
        created_at=now - patience + (0.0 if ends else 1.0),
        waiting=why,
    )
    plan = decide(observe(app, repartitions=(pod,)), now)
    if ends:
        cause = "StartFailed" if why is not None else "NoRoom"
        assert (record(plan).phase, record(plan).reason) == (UpgradePhase.REFUSED, cause)
    else:
        assert not any(isinstance(action, do.CreateDriver | do.DeleteRepartition) for action in plan.actions)
        assert condition(plan, "Reconciling").reason == "UpgradeRepartitioning"
        assert plan.wake_after is not None
        assert plan.wake_after <= 1.0


@pytest.mark.parametrize(("deciding", "ends"), [(1000.0, True), (299.0, False), (5.0, False)])
def test_a_pod_that_never_came_is_waited_for_as_long_as_an_operator_could_make_one(deciding: float, ends: bool) -> None:
    app = repartitioning()
    plan = decide(observe(app, deciding_since=NOW + 400 - deciding), NOW + 400)
    if ends:
        assert (record(plan).phase, record(plan).reason) == (UpgradePhase.REFUSED, "NoRoom")
        assert launch_of(plan).lineage == 1
    else:
        assert created(plan).lineage == 2
        assert plan.wake_after is not None
        assert plan.wake_after <= 300.0 - deciding


def test_queries_that_had_no_room_in_the_last_words_are_counted_and_their_rows_are_not_lost() -> None:
    app = repartitioning()
    end = RepartitionEnd(lineage=2, rows=7000, queries={"main": RepartitionedQuery(9, 1000, 4)}, left_out=60)
    upgrade = record(decide(observe(app, repartitions=(ended(app, end, Reason.COMPLETED),)), NOW))
    assert upgrade.repartition is not None
    assert (upgrade.phase, upgrade.repartition.rows) == (UpgradePhase.GATE, 7000)
    assert "60 of 61 queries" in upgrade.repartition.message


def test_words_about_another_lineage_are_not_believed() -> None:
    app = repartitioning()
    end = RepartitionEnd(lineage=7, rows=1000, queries={"main": RepartitionedQuery(9, 1000, 4)})
    plan = decide(observe(app, repartitions=(ended(app, end, Reason.COMPLETED),)), NOW)
    assert record(plan).phase is UpgradePhase.REFUSED


def test_a_time_that_is_over_ends_it() -> None:
    app = repartitioning()
    plan = decide(observe(app, repartitions=(pod_of(app),)), NOW + 3601)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.REFUSED, "DeadlineExceeded")
    assert any(isinstance(action, do.DeleteRepartition) for action in plan.actions)


def test_a_suspended_application_has_no_pod_and_begins_anew_when_it_goes_on() -> None:
    app = repartitioning()
    suspended = msgspec.structs.replace(app, spec=msgspec.structs.replace(app.spec, suspend=True))
    plan = decide(observe(suspended, repartitions=(pod_of(app),)), NOW)
    upgrade = record(plan)
    assert upgrade.repartition is not None
    assert (upgrade.phase, upgrade.repartition.epoch, upgrade.last_lineage) == (UpgradePhase.STOPPING, 0, 2)
    assert any(isinstance(action, do.DeleteRepartition) for action in plan.actions)


def test_a_spec_that_is_changed_back_has_the_old_version_launched_where_it_stopped() -> None:
    app = repartitioning()
    back = app_with({"application.image": "shop/orders:1"}, status=app.status)
    plan = decide(observe(back, repartitions=(pod_of(app),)), NOW)
    assert record(plan).phase is UpgradePhase.WITHDRAWN
    assert launch_of(plan).lineage == 1
    assert any(isinstance(action, do.DeleteRepartition) for action in plan.actions)


OF_NO_USE: dict[str, Any] = {"sparkConf": {"spark.driver.memory": "100g"}}
NO_POD: dict[str, Any] = {**EIGHT, "sparkConf": {"spark.executor.memory": "100g"}}


@pytest.mark.parametrize("phase", [UpgradePhase.STOPPING, UpgradePhase.REPARTITIONING])
def test_an_edit_of_which_no_driver_can_be_made_has_the_old_version_go_on_in_the_old_lineage(
    phase: UpgradePhase,
) -> None:
    app = repartitioning() if phase is UpgradePhase.REPARTITIONING else between(phase)
    bad = of_earlier_operator(app_with(NO_POD, status=app.status))
    working = (pod_of(app),) if phase is UpgradePhase.REPARTITIONING else ()
    plan = decide(observe(bad, repartitions=working), NOW)
    upgrade, config = record(plan), launch_of(plan)
    assert upgrade.repartition is not None
    assert (upgrade.phase, upgrade.reason, upgrade.to_spec_hash) == (
        UpgradePhase.REFUSED,
        "InvalidSpec",
        observe(bad).spec_hash,
    )
    assert (upgrade.repartition.result, upgrade.repartition.cause) == ("Failed", "InvalidSpec")
    assert "spark.executor.memory" in upgrade.message
    assert (config.lineage, config.state_partitions, config.pin) == (1, 4, None)
    assert "UpgradeRefused" in events(plan)
    assert len([action for action in plan.actions if isinstance(action, do.DeleteRepartition)]) == len(working)


def test_beside_such_an_edit_the_state_of_the_recorded_version_is_repartitioned_on() -> None:
    app = repartitioning()
    plan = decide(observe(app_with(NO_POD, status=app.status), repartitions=(pod_of(app),)), NOW)
    assert (record(plan).phase, plan.reason) == (UpgradePhase.REPARTITIONING, "UpgradeRepartitioning")
    assert "spark.executor.memory" in plan.message
    assert not any(isinstance(action, do.DeleteRepartition | do.CreateDriver) for action in plan.actions)


GONE = CheckedReferences(missing=(Reference("ConfigMap", "rules", field="spec.driver.podTemplate"),))


@pytest.mark.parametrize(
    ("surroundings", "cause"), [({"references": GONE}, "ReferenceMissing"), ({"rival": "shop/b"}, "StorageConflict")]
)
def test_what_the_version_needs_and_lost_meanwhile_ends_it_and_the_cause_is_documented_there(
    surroundings: dict[str, Any], cause: str
) -> None:
    app = repartitioning()
    upgrade = record(decide(observe(app, repartitions=(pod_of(app),), **surroundings), NOW))
    assert upgrade.repartition is not None
    assert (upgrade.phase, upgrade.reason, upgrade.repartition.cause) == (UpgradePhase.REFUSED, cause, cause)
    assert {Place.UPGRADE, Place.REPARTITION} <= set(entry_of(Reason(cause)).places)


@pytest.mark.parametrize("phase", [UpgradePhase.STOPPING, UpgradePhase.REPARTITIONING])
@pytest.mark.parametrize("known", [True, False])
def test_if_nothing_can_be_made_of_the_old_version_either_it_is_stalled_and_the_field_is_named(
    phase: UpgradePhase, known: bool
) -> None:
    app = repartitioning() if phase is UpgradePhase.REPARTITIONING else between(phase)
    old = stable_of(app_with(OF_NO_USE))
    before = old if known else msgspec.structs.replace(old, spec="{")
    bad = of_earlier_operator(app_with(NO_POD, status=msgspec.structs.replace(app.status, last_stable=before)))
    plan = decide(observe(bad), NOW)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.REFUSED, "InvalidSpec")
    assert ("goes on" in record(plan).message, "spark.executor.memory" in record(plan).message) == (False, True)
    assert condition(plan, "Stalled").status == "True"
    assert ("spark.driver.memory" if known else "spark.executor.memory") in condition(plan, "Stalled").message


def test_one_that_is_suspended_with_such_an_edit_begins_anew_as_well_when_the_spec_is_mended() -> None:
    app = repartitioning()
    bad = app_with({**NO_POD, "suspend": True}, status=app.status)
    plan = decide(observe(bad, repartitions=(pod_of(app),)), NOW)
    later = record(plan)
    assert later.repartition is not None
    assert (later.phase, later.repartition.attempts, later.repartition.start_time) == (UpgradePhase.STOPPING, 0, None)
    assert any(isinstance(action, do.DeleteRepartition) for action in plan.actions)
    fixed = app_with(
        {"application.image": "shop/orders:2", **EIGHT}, status=msgspec.structs.replace(app.status, upgrade=later)
    )
    hours = decide(observe(fixed), NOW + 7200)
    again = record(hours).repartition
    assert again is not None
    assert (record(hours).phase, again.attempts) == (UpgradePhase.REPARTITIONING, 1)
    assert again.lineage == 3, "it was there: the next attempt has a lineage of its own"


def test_the_old_version_that_goes_on_is_stalled_until_the_spec_is_mended_and_the_upgrade_begins_anew_then() -> None:
    refused = record(decide(observe(of_earlier_operator(app_with(NO_POD, status=repartitioning().status))), NOW))
    status = msgspec.structs.replace(old_app().status, state_partitions=4, upgrade=refused)
    running = runs(old_app())
    plan = decide(observe(app_with(NO_POD, status=status), **running), NOW)
    assert condition(plan, "Stalled").reason == "UpgradeRefused"
    assert "spark.executor.memory" in condition(plan, "Stalled").message
    fixed = record(decide(observe(app_with(EIGHT, status=status), **running), NOW))
    assert (fixed.phase, fixed.number, fixed.repartition) == (UpgradePhase.COPYING, 2, WANTED)


def test_a_rollback_never_takes_the_number_of_a_lineage_that_an_attempt_had() -> None:
    app = in_four(under_test(UpgradePhase.GATE, EIGHT, lineage=3, last_lineage=5, repartition=WANTED), lineage=3)
    asked = msgspec.structs.replace(
        app, spec=msgspec.structs.replace(app.spec, upgrade=msgspec.structs.replace(app.spec.upgrade, rollback_to=PIN))
    )
    assert record(decide(observe(asked), NOW)).lineage == 6


def test_a_version_that_an_earlier_operator_stored_leaves_the_number_as_it_is() -> None:
    spec = app_with(EIGHT).spec
    stored = version_of(spec).replace('"state.partitions":8,', "")
    assert with_version(spec, stored).state.partitions == 8
