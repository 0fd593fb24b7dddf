"""What holds for every course of events around upgrades, not just for those somebody thought of. Pure."""

from collections.abc import Callable

from hypothesis import example, given
from hypothesis import strategies as st

from tidegate.api.streaming_app import RehearsalSpec, RollbackPolicy, UpgradeMode, UpgradePhase
from tidegate.app import actions as do
from tidegate.app.observation import Observation
from tidegate.app.rules.plan import decide
from tidegate.app.rules.upgrade.record import UNDER_WAY
from tidegate_testing.cluster_simulation import DRIVER
from tidegate_testing.observations import app_with
from tidegate_testing.upgrade_simulation import UpgradeCluster

STEPS = 120
LAUNCHED = {UpgradePhase.STOPPING, UpgradePhase.GATE, UpgradePhase.FAILED}
"""Phases in which a version that is not stable is to run, if one was launched."""


def ask_for_version_a_with_another_nonce(cluster: UpgradeCluster) -> None:
    cluster.change_spec(("--a",), 1)
    cluster.change_nonce()


EVENTS: dict[str, Callable[[UpgradeCluster], object]] = {
    "kubelet": UpgradeCluster.kubelet,
    "commit": UpgradeCluster.commit,
    "commit enough": lambda c: c.commit(5),
    "version a": lambda c: c.change_spec(("--a",), 1),
    "version b": lambda c: c.change_spec(("--b",), 1),
    "version c": lambda c: c.change_spec(("--c",), 1),
    "no pod": lambda c: c.ask_for_no_pod(True),
    "a pod": lambda c: c.ask_for_no_pod(False),
    "broken": UpgradeCluster.break_version,
    "mended": UpgradeCluster.fix_version,
    "unreadable": lambda c: setattr(c, "unreadable", True),
    "readable": lambda c: setattr(c, "unreadable", False),
    "crash": UpgradeCluster.crash_driver,
    "evict": UpgradeCluster.evict_driver,
    "remove pod": UpgradeCluster.remove_driver,
    "an hour": lambda c: setattr(c, "now", c.now + 3600),
    "suspend": lambda c: c.suspend(True),
    "resume": lambda c: c.suspend(False),
    "quota": lambda c: c.set_quota(True),
    "no quota": lambda c: c.set_quota(False),
    "last state": lambda c: c.change_upgrade(mode=UpgradeMode.LAST_STATE),
    "snapshot": lambda c: c.change_upgrade(mode=UpgradeMode.SNAPSHOT),
    "stateless": lambda c: c.change_upgrade(mode=UpgradeMode.STATELESS),
    "consent": UpgradeCluster.give_up_state,
    "never": lambda c: c.change_upgrade(rollback_policy=RollbackPolicy.NEVER),
    "rehearse": lambda c: c.change_upgrade(rehearsal=RehearsalSpec()),
    "no rehearsal": lambda c: c.change_upgrade(rehearsal=None),
    "kill rehearsal": UpgradeCluster.kill_rehearsal,
    "evict rehearsal": UpgradeCluster.evict_rehearsal,
    "starve rehearsal": UpgradeCluster.starve_rehearsal,
    "remove rehearsal": UpgradeCluster.remove_rehearsal,
    "roll back": UpgradeCluster.ask_for_rollback,
    "nonce": UpgradeCluster.change_nonce,
    "version a and a nonce": ask_for_version_a_with_another_nonce,
    "delete": UpgradeCluster.delete_app,
}
ORDINARY = sorted(EVENTS.keys() - {"stateless", "consent", "delete"})


def courses(names: list[str], most: float = 400) -> st.SearchStrategy[list[tuple[str, int | None, float]]]:
    """Return what happens, after how many actions the operator crashes then, and how many seconds pass at most."""
    crashes = st.one_of(st.none(), st.integers(0, 6))
    return st.lists(st.tuples(st.sampled_from(names), crashes, st.floats(0, most)), max_size=24)


def begin() -> UpgradeCluster:
    """Return a world whose first version is stable."""
    cluster = UpgradeCluster(app_with(finalizers=[]))
    settle(cluster)
    cluster.commit(5)
    settle(cluster)
    assert cluster.app is not None
    assert cluster.app.status.last_stable is not None
    return cluster


def step(cluster: UpgradeCluster, crash_after: int | None = None) -> do.Plan | None:
    observation = cluster.observe()
    if observation is None:
        return None
    plan = decide(observation, cluster.now)
    if stands_still_for_an_edit(observation, plan, cluster.now):
        cluster.trouble.append(f"it stands still for an edit: {plan.message}")
    if undoes_too_much(cluster, observation, plan):
        cluster.trouble.append(f"more than the time of the gate is undone for an edit: {plan.message}")
    cluster.carry_out(plan, crash_after)
    return plan


def stands_still_for_an_edit(o: Observation, plan: do.Plan, now: float) -> bool:
    """Return whether nothing runs because no pod can be built from the spec, and a stable version could go on."""
    status, upgrade = o.app.status, o.app.status.upgrade
    if plan.reason != "InvalidSpec" or o.driver is not None or status.last_stable is None:
        return False
    if upgrade is None or not upgrade.epoch or upgrade.phase not in LAUNCHED:
        return True
    # What a launched version has made of the state is for a person then.
    lost = upgrade.rollback_snapshot is None or upgrade.rollback_snapshot.lost
    if lost or o.app.spec.upgrade.rollback_policy is not RollbackPolicy.ON_FAILURE or upgrade.start_time is None:
        return False
    return now - upgrade.start_time.timestamp() < o.app.spec.upgrade.timeout_seconds


def undoes_too_much(cluster: UpgradeCluster, o: Observation, plan: do.Plan) -> bool:
    """Return whether a version is taken back for an edit that was launched longer ago than it had to be stable."""
    known, written = (
        o.app.status.upgrade,
        [it.status.upgrade for it in plan.actions if isinstance(it, do.RecordLaunch | do.WriteStatus)],
    )
    if known is None or known.phase is UpgradePhase.ROLLING_BACK or not written or written[0] is None:
        return False
    began = cluster.began.get(known.epoch)
    if began is None or (written[0].phase, written[0].reason) != (UpgradePhase.ROLLING_BACK, "InvalidSpec"):
        return False
    return cluster.now - began >= o.app.spec.upgrade.timeout_seconds


def live(cluster: UpgradeCluster, course: list[tuple[str, int | None, float]]) -> None:
    for event, crash_after, seconds in course:
        EVENTS[event](cluster)
        cluster.now += seconds
        step(cluster, crash_after)


def calm(cluster: UpgradeCluster) -> None:
    """Take away what keeps drivers from being launched."""
    cluster.set_quota(False)
    cluster.suspend(False)
    cluster.ask_for_no_pod(False)


def settle(cluster: UpgradeCluster, commits: bool = False) -> do.Plan | None:
    """Let the world go on until nothing happens any more, with input for the driver if ``commits``."""
    for _ in range(STEPS):
        plan = step(cluster)
        changed = cluster.kubelet()
        if plan is None:
            return None
        if commits and not changed:
            before = (cluster.committed, cluster.pods.get(DRIVER))
            if cluster.committed < 9:
                cluster.commit()
            changed = before != (cluster.committed, cluster.pods.get(DRIVER))
        if not plan.actions and not changed:
            if plan.wake_after is None or not commits:
                return plan
            cluster.now += plan.wake_after
    raise AssertionError(f"no rest after {STEPS} steps; the last plan: {plan}")


GIVEN_UP_BEFORE_IT_RAN = [
    *["version b", *["kubelet"] * 6, "commit", "broken", "crash", "commit", "quota", *["kubelet"] * 3],
    *["stateless", "consent", "version c", "no quota", *["kubelet"] * 5, "commit", "commit", "broken", "commit"],
]
"""A rollback's lineage, before a driver filled it; the version after it fails as well."""


GONE_AS_IT_IS_TAKEN_BACK: list[tuple[str, int | None, float]] = [
    *[(event, None, 1.0) for event in ("version a", *["kubelet"] * 9, "commit enough", "kubelet")],
    *[(event, None, 1.0) for event in ("version b", *["kubelet"] * 9, "commit")],
    *[(event, 0, 1.0) for event in ("remove pod", "kubelet", "kubelet")],
    ("version a and a nonce", None, 1.0),
]
"""Nobody looks as the driver of the version under test goes, and its spec is reverted with another number."""


@example([(event, None, 1.0) for event in GIVEN_UP_BEFORE_IT_RAN])
@example(GONE_AS_IT_IS_TAKEN_BACK)
@given(courses(sorted(EVENTS)))
def test_every_upgrade_comes_to_an_end(course: list[tuple[str, int | None, float]]) -> None:
    cluster = begin()
    live(cluster, course)
    calm(cluster)
    settle(cluster, commits=True)
    assert cluster.trouble == []
    if cluster.app is None:
        assert cluster.pods == {}
        return
    upgrade = cluster.app.status.upgrade
    assert DRIVER in cluster.pods
    assert upgrade is None or upgrade.phase not in UNDER_WAY
    runs = cluster.pods[DRIVER].spec_hash
    observation = cluster.observe()
    assert observation is not None
    held_back = upgrade is not None and upgrade.phase in (UpgradePhase.REFUSED, UpgradePhase.ROLLED_BACK)
    assert (runs != observation.spec_hash) == held_back


LOST_LATE = ["version b", *["kubelet"] * 9, "no pod", "an hour", "remove pod", "kubelet"]


@example([(event, None, 0.0) for event in LOST_LATE])
@given(courses(ORDINARY))
def test_no_lineage_starts_from_nothing_and_nothing_needed_is_disposed_of(
    course: list[tuple[str, int | None, float]],
) -> None:
    cluster = begin()
    live(cluster, course)
    calm(cluster)
    settle(cluster, commits=True)
    assert cluster.trouble == []


@given(courses(ORDINARY))
def test_nothing_of_a_rehearsal_is_left_when_it_is_over(course: list[tuple[str, int | None, float]]) -> None:
    cluster = begin()
    cluster.change_upgrade(rehearsal=RehearsalSpec())
    cluster.change_spec(("--a",), 1)
    live(cluster, course)
    calm(cluster)
    settle(cluster, commits=True)
    assert [pod.name for pod in cluster.pods.values() if pod.role == "rehearsal"] == []
    assert cluster.left_places() == set()
    assert cluster.trouble == []


REHEARSED = ["kubelet", "commit", "kill rehearsal", "evict rehearsal", "remove rehearsal", "quota", "no quota"]


@given(courses(REHEARSED, 2))  # so that there is a copy in time
def test_a_version_that_fails_in_its_rehearsal_never_runs_and_the_one_before_is_not_touched(
    course: list[tuple[str, int | None, float]],
) -> None:
    cluster = begin()
    cluster.change_upgrade(rehearsal=RehearsalSpec(timeout_seconds=86400))
    cluster.change_spec(("--a",), 1)
    cluster.break_version()
    launched, driver = len(cluster.configs), cluster.pods[DRIVER].uid
    live(cluster, course)
    cluster.set_quota(False)
    settle(cluster, commits=True)
    assert cluster.app is not None
    upgrade = cluster.app.status.upgrade
    assert upgrade is not None
    assert (upgrade.phase, upgrade.reason) == (UpgradePhase.REFUSED, "RehearsalFailed")
    assert (len(cluster.configs), cluster.pods[DRIVER].uid) == (launched, driver)
    assert "driver" not in cluster.deletions


@given(courses(sorted(EVENTS)))
def test_no_epoch_is_used_by_two_pods_and_no_lineage_is_gone_back_to(
    course: list[tuple[str, int | None, float]],
) -> None:
    cluster = begin()
    live(cluster, course)
    assert cluster.launches == sorted(set(cluster.launches))
    lineages = [config.lineage for config, _ in cluster.configs]
    assert lineages == sorted(lineages)


@given(courses(ORDINARY))
def test_after_a_rollback_the_state_has_no_batch_of_the_version_that_was_rolled_back(
    course: list[tuple[str, int | None, float]],
) -> None:
    cluster = begin()
    live(cluster, course)
    calm(cluster)
    settle(cluster, commits=True)
    assert cluster.app is not None
    upgrade, status = cluster.app.status.upgrade, cluster.app.status
    if upgrade is not None and upgrade.phase is UpgradePhase.ROLLED_BACK and upgrade.rollback_snapshot is not None:
        started_from = cluster.noted[upgrade.rollback_snapshot.id][1]
        new = cluster.lineages[status.lineage]
        assert new[:started_from] == cluster.lineages[upgrade.rollback_snapshot.lineage][:started_from]
        assert set(new[started_from:]) <= {status.last_stable.spec_hash if status.last_stable else ""}


@given(courses(ORDINARY), st.sampled_from(["--a", "--b"]))
def test_a_version_that_was_rolled_back_is_not_launched_again_before_the_spec_changes(
    course: list[tuple[str, int | None, float]], argument: str
) -> None:
    cluster = begin()
    cluster.change_spec((argument,), 1)
    cluster.break_version()
    settle(cluster, commits=True)
    assert cluster.app is not None
    assert cluster.app.status.upgrade is not None
    assert cluster.app.status.upgrade.phase is UpgradePhase.ROLLED_BACK
    launched = len(cluster.configs)
    calm = {
        "kubelet",
        "commit",
        "commit enough",
        "crash",
        "evict",
        "remove pod",
        "suspend",
        "resume",
        "quota",
        "mended",
    }
    live(cluster, [each for each in course if each[0] in calm])
    failed = cluster.app.status.upgrade.to_spec_hash
    assert failed not in {version for _, version in cluster.configs[launched:]}


@given(courses(ORDINARY))
def test_an_edit_of_which_no_pod_can_be_made_ends_no_driver(course: list[tuple[str, int | None, float]]) -> None:
    cluster = begin()
    live(cluster, course)
    calm(cluster)
    settle(cluster, commits=True)
    before = cluster.pods[DRIVER]
    cluster.ask_for_no_pod(True)
    settle(cluster)
    after = cluster.pods.get(DRIVER)
    if before.running:  # else it has ended for good, and makes room
        assert after is not None
        assert (after.uid, after.running) == (before.uid, True)
    calm(cluster)
    settle(cluster, commits=True)
    assert cluster.trouble == []


@given(courses(sorted(EVENTS)))
def test_the_same_world_gives_the_same_plan(course: list[tuple[str, int | None, float]]) -> None:
    cluster = begin()
    live(cluster, course)
    observation = cluster.observe()
    if observation is not None:
        assert decide(observation, cluster.now) == decide(observation, cluster.now)
