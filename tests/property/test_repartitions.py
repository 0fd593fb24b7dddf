"""What holds for every course of events around a repartition: the old lineage or the new one, whole. Pure."""

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.property.test_upgrades import settle, step
from tidegate.api.spec_hash import spec_hash
from tidegate.api.streaming_app import RollbackPolicy, UpgradeMode, UpgradePhase, UpgradeStatus
from tidegate.app import actions as do
from tidegate.app.observation import Observation
from tidegate.app.rules.upgrade.record import UNDER_WAY, is_pending, version_held
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.cluster_simulation import DRIVER
from tidegate_testing.observations import app_with
from tidegate_testing.plans import written
from tidegate_testing.repartition_simulation import RepartitionCluster

EVENTS: dict[str, Callable[[RepartitionCluster], object]] = {
    "kubelet": RepartitionCluster.kubelet,
    "commit": RepartitionCluster.commit,
    "commit enough": lambda c: c.commit(5),
    "version a": lambda c: c.change_spec(("--a",), 1),
    "version b": lambda c: c.change_spec(("--b",), 1),
    "8 partitions": lambda c: c.repartition(8),
    "3 partitions": lambda c: c.repartition(3),
    "4 partitions": lambda c: c.repartition(4),
    "kill repartition": RepartitionCluster.kill_repartition,
    "evict repartition": RepartitionCluster.evict_repartition,
    "remove repartition": RepartitionCluster.remove_repartition,
    "Spark fails": lambda c: setattr(c, "wrong", Reason.SPARK_FAILED),
    "batch cut": lambda c: setattr(c, "wrong", Reason.BATCH_UNCOMMITTED),
    "storage away": lambda c: setattr(c, "wrong", Reason.DEPENDENCY_UNAVAILABLE),
    "it works": lambda c: setattr(c, "wrong", Reason.NONE),
    "HDFS": lambda c: setattr(c, "provider", "HDFS"),
    "RocksDB": lambda c: setattr(c, "provider", "RocksDB"),
    "broken": RepartitionCluster.break_version,
    "mended": RepartitionCluster.fix_version,
    "crash": RepartitionCluster.crash_driver,
    "evict": RepartitionCluster.evict_driver,
    "remove pod": RepartitionCluster.remove_driver,
    "suspend": lambda c: c.suspend(True),
    "resume": lambda c: c.suspend(False),
    "quota": lambda c: c.set_quota(True),
    "no quota": lambda c: c.set_quota(False),
    "last state": lambda c: c.change_upgrade(mode=UpgradeMode.LAST_STATE),
    "snapshot": lambda c: c.change_upgrade(mode=UpgradeMode.SNAPSHOT),
    "never": lambda c: c.change_upgrade(rollback_policy=RollbackPolicy.NEVER),
    "roll back": RepartitionCluster.ask_for_rollback,
    "no pod": lambda c: c.ask_for_no_pod(True),
    "a pod": lambda c: c.ask_for_no_pod(False),
    "nonce": RepartitionCluster.change_nonce,
    "delete": RepartitionCluster.delete_app,
}
ORDINARY = sorted(EVENTS.keys() - {"delete"})
Course = list[tuple[str, int | None, float]]


def courses(names: list[str]) -> st.SearchStrategy[Course]:
    """Return what happens, after how many actions the operator crashes then, and how many seconds pass at most."""
    crashes = st.one_of(st.none(), st.integers(0, 6))
    return st.lists(st.tuples(st.sampled_from(names), crashes, st.floats(0, 200)), max_size=24)


def begin() -> RepartitionCluster:
    cluster = RepartitionCluster(app_with(finalizers=[]))
    settle(cluster)
    cluster.commit(5)
    settle(cluster)
    assert cluster.app is not None
    assert (cluster.app.status.last_stable is not None, cluster.app.status.state_partitions) == (True, 4)
    return cluster


def begin_first() -> RepartitionCluster:
    return RepartitionCluster(app_with(finalizers=[]))


def begin_at_gate() -> RepartitionCluster:
    cluster = begin()
    cluster.change_spec(("--b",), 1)
    settle(cluster)
    assert cluster.app is not None
    assert cluster.app.status.upgrade is not None
    assert cluster.app.status.upgrade.phase is UpgradePhase.GATE
    return cluster


BEGINNINGS = st.sampled_from([begin, begin_first, begin_at_gate])


def live(cluster: RepartitionCluster, course: Course) -> None:
    for event, crash_after, seconds in course:
        EVENTS[event](cluster)
        cluster.now += seconds
        step(cluster, crash_after)


def calm(cluster: RepartitionCluster) -> None:
    cluster.set_quota(False)
    cluster.suspend(False)
    cluster.ask_for_no_pod(False)
    cluster.wrong = Reason.NONE


def at_once(*events: str) -> Course:
    return [(event, None, 0.0) for event in events]


REMOVED_BY_FORCE = at_once("8 partitions", "kubelet", "kubelet", "kubelet", "kubelet", "remove repartition")
NEVER_BEGAN_IN_ITS_LINEAGE = at_once("crash", "nonce", "remove pod", "remove pod", "crash")
WAITS_BESIDE_AN_EDIT = at_once("last state", "version b", "8 partitions", "no pod", "kubelet")


@example(REMOVED_BY_FORCE)
@example(WAITS_BESIDE_AN_EDIT)
@given(courses(sorted(EVENTS)))
def test_whatever_happens_it_ends_with_one_driver_on_a_lineage_that_is_whole(course: Course) -> None:
    cluster = begin()
    live(cluster, course)
    calm(cluster)
    settle(cluster, commits=True)
    assert cluster.trouble == []
    if cluster.app is None:
        assert cluster.pods == {}
        return
    upgrade = cluster.app.status.upgrade
    assert upgrade is None or upgrade.phase not in UNDER_WAY
    assert DRIVER in cluster.pods
    assert [pod.name for pod in cluster.pods.values() if pod.role == "repartition"] == []
    assert cluster.app.status.lineage not in cluster.unfinished


@example(begin_at_gate, NEVER_BEGAN_IN_ITS_LINEAGE)
@given(BEGINNINGS, courses(ORDINARY))
def test_state_has_the_partitions_of_the_version_that_runs_on_it(
    beginning: Callable[[], RepartitionCluster], course: Course
) -> None:
    cluster = beginning()
    live(cluster, course)
    calm(cluster)
    settle(cluster, commits=True)
    assert cluster.app is not None
    status, driver = cluster.app.status, cluster.pods[DRIVER]
    held = version_held(cluster.app.spec, status.last_stable)
    failed = status.upgrade is not None and status.upgrade.phase is UpgradePhase.FAILED
    if driver.spec_hash == spec_hash(cluster.app) and not failed:
        assert cluster.divisions[status.lineage] == cluster.app.spec.state.partitions
    elif held is not None and not failed:
        assert cluster.divisions[status.lineage] == held.state.partitions
    assert status.state_partitions == cluster.divisions[status.lineage]


@given(courses(ORDINARY))
def test_no_batch_that_was_committed_is_lost_but_by_a_rollback(course: Course) -> None:
    cluster = begin()
    rolled_back = 0
    for event in course:
        live(cluster, [event])
        upgrade = cluster.app.status.upgrade if cluster.app is not None else None
        rolled_back += upgrade is not None and upgrade.phase is UpgradePhase.ROLLING_BACK
    calm(cluster)
    settle(cluster, commits=True)
    upgrade = cluster.app.status.upgrade if cluster.app is not None else None
    assert cluster.app is not None
    if not rolled_back and (upgrade is None or upgrade.phase is not UpgradePhase.ROLLED_BACK):
        newest = cluster.lineages[cluster.app.status.lineage]
        assert all(newest[: len(state)] == state for state in cluster.lineages.values())


@given(courses(ORDINARY))
def test_each_attempt_has_an_epoch_and_a_lineage_of_its_own(course: Course) -> None:
    cluster = begin()
    live(cluster, course)
    assert cluster.launches == sorted(set(cluster.launches))
    made = [order.lineage for order, _ in cluster.orders.values()]
    assert len(made) == len(set(made))


LOSSES = ["kill repartition", "evict repartition", "remove repartition"]


@given(st.sampled_from([1, 3, 8]), st.lists(st.sampled_from(LOSSES), max_size=2))
def test_pods_that_are_lost_are_followed_by_others_until_the_state_is_repartitioned(
    partitions: int, lost: list[str]
) -> None:
    cluster = begin()
    cluster.repartition(partitions)
    for event in lost:
        while not any(pod.role == "repartition" and pod.running for pod in cluster.pods.values()):
            step(cluster)
            cluster.kubelet()
        EVENTS[event](cluster)
    settle(cluster, commits=True)
    assert cluster.app is not None
    upgrade = cluster.app.status.upgrade
    assert upgrade is not None
    assert upgrade.repartition is not None
    assert (upgrade.phase, upgrade.repartition.result) == (UpgradePhase.COMPLETED, "Completed")
    assert cluster.divisions[cluster.app.status.lineage] == partitions


@given(st.sampled_from([Reason.SPARK_FAILED, Reason.STATE_DIFFERS, Reason.DEPENDENCY_UNAVAILABLE]))
def test_after_a_repartition_that_failed_the_old_version_goes_on_in_the_old_lineage(what: Reason) -> None:
    cluster = begin()
    before = cluster.lineages[1]
    cluster.wrong = what
    cluster.repartition(8)
    settle(cluster, commits=True)
    assert cluster.app is not None
    upgrade = cluster.app.status.upgrade
    assert upgrade is not None
    assert (upgrade.phase, upgrade.reason) == (UpgradePhase.REFUSED, what.value)
    assert cluster.app.status.lineage == 1
    assert cluster.lineages[1][: len(before)] == before
    assert len(cluster.lineages[1]) > len(before)
    assert cluster.trouble == []


@pytest.mark.parametrize("times", [0, 1, 2, 3])
def test_a_version_that_is_ended_inside_a_batch_is_repartitioned_when_it_has_run_that_but_not_tried_for_ever(
    times: int,
) -> None:
    cluster = begin()
    cluster.repartition(8)
    for _ in range(100):
        step(cluster)
        cluster.wrong = Reason.BATCH_UNCOMMITTED if len(cluster.orders) <= times else Reason.NONE
        cluster.kubelet()
        cluster.commit()
    assert cluster.app is not None
    upgrade = cluster.app.status.upgrade
    assert upgrade is not None
    refused = (UpgradePhase.REFUSED, Reason.BATCH_UNCOMMITTED)
    assert (upgrade.phase, upgrade.reason) == (refused if times == 3 else (UpgradePhase.COMPLETED, "Stable"))
    assert (len(cluster.orders), cluster.app.status.state_partitions) == ((3, 4) if times == 3 else (times + 1, 8))
    assert (cluster.pods[DRIVER].running, cluster.trouble) == (True, [])


@given(st.integers(0, 12))
def test_an_edit_that_no_driver_can_be_made_of_leaves_no_application_down(steps: int) -> None:
    cluster = begin()
    before = cluster.lineages[1]
    cluster.repartition(8)
    for _ in range(steps):
        step(cluster)
        cluster.kubelet()
    cluster.ask_for_no_pod(True)
    settle(cluster, commits=True)
    assert cluster.app is not None
    status = cluster.app.status
    assert cluster.pods[DRIVER].running
    assert cluster.divisions[status.lineage] == status.state_partitions
    assert cluster.lineages[status.lineage][: len(before)] == before
    assert [pod.name for pod in cluster.pods.values() if pod.role == "repartition"] == []
    cluster.ask_for_no_pod(False)
    settle(cluster, commits=True)
    assert (cluster.app.status.state_partitions, cluster.trouble) == (8, [])


def test_what_spark_can_not_repartition_is_said_while_the_application_runs() -> None:
    cluster = begin()
    cluster.provider = "HDFS"
    driver = cluster.pods[DRIVER].uid
    cluster.repartition(8)
    settle(cluster, commits=True)
    assert cluster.app is not None
    upgrade, ready = cluster.app.status.upgrade, cluster.app.status.condition("Stalled")
    assert upgrade is not None
    assert ready is not None
    assert (upgrade.phase, upgrade.reason) == (UpgradePhase.REFUSED, "UnsupportedProvider")
    assert (cluster.pods[DRIVER].uid, ready.status, "driver" in cluster.deletions) == (driver, "True", False)
    assert "RocksDB" in ready.message


def test_a_number_that_is_changed_before_the_first_version_is_stable_comes_once_it_is() -> None:
    cluster = RepartitionCluster(app_with(finalizers=[]))
    settle(cluster)
    cluster.commit(1)
    settle(cluster)
    cluster.repartition(3)
    settle(cluster)
    assert cluster.app is not None
    assert (cluster.app.status.state_partitions, cluster.launches) == (4, [1])
    settle(cluster, commits=True)
    status = cluster.app.status
    assert status.upgrade is not None
    assert (status.upgrade.phase, status.state_partitions, cluster.divisions[status.lineage]) == (
        UpgradePhase.COMPLETED,
        3,
        3,
    )
    assert cluster.trouble == []


STOPPED_OTHERWISE = {"HDFS", "RocksDB", "suspend", "resume"}


@example(begin, at_once("3 partitions", "nonce", "4 partitions"))
@given(BEGINNINGS, courses(sorted(set(ORDINARY) - STOPPED_OTHERWISE)))
def test_nothing_that_runs_is_stopped_for_a_repartition_that_spark_can_not_do(
    beginning: Callable[[], RepartitionCluster], course: Course
) -> None:
    cluster = beginning()
    cluster.provider = "HDFS"
    for event, crash_after, seconds in course:
        EVENTS[event](cluster)
        cluster.now += seconds
        o = cluster.observe()
        plan = step(cluster, crash_after)
        if o is None or plan is None or not any(isinstance(action, do.DeleteDriver) for action in plan.actions):
            continue
        status = written(o, cluster.now).status
        upgrade = status.upgrade
        if status.last_stable != o.app.status.last_stable:
            continue  # the stable version is what is asked for, with another number: it is started again for that
        under_way = upgrade is not None and upgrade.phase in UNDER_WAY
        assert not under_way or not is_pending(upgrade) or _goes_anyway(o, upgrade)


def _goes_anyway(o: Observation, upgrade: UpgradeStatus | None) -> bool:
    driver, known = o.driver, o.app.status.upgrade
    if upgrade is None or driver is None or not driver.running:
        return True
    under_test = known is not None and known.phase in (UpgradePhase.GATE, UpgradePhase.FAILED)
    tested = {known.to_spec_hash} if known is not None and under_test else set()
    # One of neither version was to be started again for its number.
    return driver.spec_hash not in {upgrade.from_spec_hash, upgrade.to_spec_hash} | tested


def test_a_lineage_that_a_rollback_has_not_filled_yet_is_not_repartitioned() -> None:
    cluster = begin()
    for event in ("quota", "remove pod", "version a", "roll back", "3 partitions"):
        EVENTS[event](cluster)
        step(cluster)
    calm(cluster)
    settle(cluster, commits=True)
    assert cluster.app is not None
    status = cluster.app.status
    assert (cluster.trouble, status.state_partitions, cluster.divisions[status.lineage]) == ([], 3, 3)
