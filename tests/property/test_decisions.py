"""What holds for every course of events, not just for those somebody thought of. Pure."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from tidegate.api.streaming_app import DeletionPolicy
from tidegate.app import actions as do
from tidegate.app.rules.launch.launch import LONGEST_PAUSE
from tidegate.app.rules.live.ended_driver import ends_to_be_retried
from tidegate.app.rules.plan import decide
from tidegate.engine.rules.actions import PublishEvent, RemoveFinalizer
from tidegate.engine.rules.pauses import LONGEST_REFUSED_PAUSE
from tidegate_testing.cluster_simulation import DRIVER, PURGE, Cluster
from tidegate_testing.observations import app_with

STEPS = 60

EVENTS: dict[str, Callable[[Cluster], object]] = {
    "kubelet": Cluster.kubelet,
    "crash": Cluster.crash_driver,
    "evict": Cluster.evict_driver,
    "finish": Cluster.finish_driver,
    "storage owned": Cluster.refuse_storage,
    "budget exhausted": Cluster.exhaust_driver,
    "fenced": Cluster.fence_driver,
    "suspend": lambda c: c.suspend(True),
    "resume": lambda c: c.suspend(False),
    "nonce": Cluster.change_nonce,
    "no image": Cluster.stop_pulling,
    "delete pod": Cluster.delete_driver,
    "remove pod": Cluster.remove_driver,
    "executor": Cluster.add_executor,
    "edit args": lambda c: c.change_spec(("--a",), 1),
    "edit args again": lambda c: c.change_spec(("--b",), 1),
    "scale": lambda c: c.change_spec((), 3),
    "quota": lambda c: c.set_quota(True),
    "no quota": lambda c: c.set_quota(False),
    "delete": Cluster.delete_app,
}
courses = st.lists(
    st.tuples(st.sampled_from(sorted(EVENTS)), st.one_of(st.none(), st.integers(0, 6)), st.floats(0, 400)),
    max_size=14,
)
"""What happens, after how many actions the operator crashes then, and how many seconds pass."""
policies = st.sampled_from(DeletionPolicy)


def begin(policy: DeletionPolicy) -> Cluster:
    return Cluster(app_with({"storage.deletionPolicy": policy.value}, finalizers=[]))


def step(cluster: Cluster, crash_after: int | None = None) -> do.Plan | None:
    observation = cluster.observe()
    if observation is None:
        return None
    plan = decide(observation, cluster.now)
    check_cover(cluster, plan)
    cluster.carry_out(plan, crash_after)
    return plan


def live(cluster: Cluster, course: list[tuple[str, int | None, float]]) -> None:
    for event, crash_after, seconds in course:
        EVENTS[event](cluster)
        cluster.now += seconds
        step(cluster, crash_after)


def check_cover(cluster: Cluster, plan: do.Plan) -> None:
    """Nothing is destroyed without a wish or a loss that covers it."""
    app = cluster.app
    assert app is not None
    doomed = app.metadata.deletion_timestamp is not None
    for action in plan.actions:
        match action:
            case do.DeleteDriver(pod=pod):
                observation = cluster.observe()
                assert observation is not None
                lost = pod.phase == "Failed" or ends_to_be_retried(pod)
                asked = app.spec.suspend or pod.spec_hash != observation.spec_hash
                assert doomed or lost or asked
            case do.DeleteExecutor(pod=pod):
                driver = cluster.pods.get(DRIVER)
                assert doomed or driver is None or pod.owner_uid != driver.uid or pod.finished
            case do.CreatePurge():
                assert doomed
                assert app.spec.storage.deletion_policy is DeletionPolicy.DELETE
                assert DRIVER not in cluster.pods
            case RemoveFinalizer():
                assert doomed
                assert set(cluster.pods) <= {PURGE}
            case do.DeleteLaunchSecrets():
                assert DRIVER not in cluster.pods
            case do.CreateDriver(epoch=epoch):
                assert epoch in cluster.secrets or do.EnsureLaunchSecrets(epoch) in plan.actions
            case _:
                pass


def settle(cluster: Cluster) -> do.Plan | None:
    plan = None
    for _ in range(STEPS):
        plan = step(cluster)
        changed = cluster.kubelet()
        if plan is None:
            return None
        if not plan.actions and not changed:
            if plan.wake_after is None:
                return plan
            cluster.now += plan.wake_after
    raise AssertionError(f"no rest after {STEPS} steps; the last plan: {plan}")


@given(policies, courses)
def test_every_course_of_events_comes_to_rest(
    policy: DeletionPolicy, course: list[tuple[str, int | None, float]]
) -> None:
    cluster = begin(policy)
    live(cluster, course)
    cluster.set_quota(False)
    settle(cluster)
    deleted = any(event == "delete" for event, _, _ in course)
    assert (cluster.app is None) == deleted
    if deleted:
        assert cluster.pods == {}
    elif cluster.app is not None and cluster.app.spec.suspend:
        assert DRIVER not in cluster.pods or cluster.pods[DRIVER].finished
    else:
        assert DRIVER in cluster.pods or cluster.launches


@given(policies, courses)
def test_no_epoch_is_used_by_two_pods_and_none_goes_back(
    policy: DeletionPolicy, course: list[tuple[str, int | None, float]]
) -> None:
    cluster = begin(policy)
    live(cluster, course)
    assert cluster.launches == sorted(set(cluster.launches))


@given(policies, courses)
def test_the_same_world_gives_the_same_plan(
    policy: DeletionPolicy, course: list[tuple[str, int | None, float]]
) -> None:
    cluster = begin(policy)
    live(cluster, course)
    observation = cluster.observe()
    if observation is not None:
        assert decide(observation, cluster.now) == decide(observation, cluster.now)


@given(policies, courses)
def test_a_plan_carried_out_is_not_decided_again(
    policy: DeletionPolicy, course: list[tuple[str, int | None, float]]
) -> None:
    cluster = begin(policy)
    live(cluster, course)
    cluster.set_quota(False)
    step(cluster)
    writes = (do.WriteStatus, do.RecordLaunch, do.CreateDriver, do.DeleteDriver, PublishEvent)
    first = step(cluster)
    again = step(cluster)
    if first is not None and again is not None and first.rule == again.rule:
        assert [action for action in again.actions if isinstance(action, writes)] == []


@given(policies, courses)
def test_without_a_wish_a_healthy_driver_is_left_alone(
    policy: DeletionPolicy, course: list[tuple[str, int | None, float]]
) -> None:
    calm = [event for event in course if event[0] in {"kubelet", "crash", "executor", "scale"}]
    cluster = begin(policy)
    settle(cluster)
    cluster.deletions.clear()
    live(cluster, [(name, crash, 1.0) for name, crash, _ in calm if name != "scale"])
    assert "driver" not in cluster.deletions


@given(st.sampled_from(["budget exhausted", "fenced"]), courses)
def test_what_failed_for_good_waits_for_a_person(how: str, course: list[tuple[str, int | None, float]]) -> None:
    cluster = begin(DeletionPolicy.RETAIN)
    settle(cluster)
    EVENTS[how](cluster)
    settle(cluster)
    launches = list(cluster.launches)
    harmless = {"kubelet", "delete pod", "remove pod", "executor", "quota", "no quota"}
    live(cluster, [each for each in course if each[0] in harmless])
    settle(cluster)
    assert cluster.launches == launches


@given(policies, courses, st.floats(-10_000, 10_000))
def test_nobody_waits_longer_than_the_longest_pause_whatever_happens_to_the_clock(
    policy: DeletionPolicy, course: list[tuple[str, int | None, float]], jump: float
) -> None:
    cluster = begin(policy)
    live(cluster, course)
    cluster.now += jump
    observation = cluster.observe()
    # Of a pod that ends, what is waited for is the moment to call it stuck, which is the API server's time.
    if observation is not None and not any(pod.terminating for pod in cluster.pods.values()):
        plan = decide(observation, cluster.now)
        assert plan.wake_after is None or 0 <= plan.wake_after <= max(LONGEST_PAUSE, LONGEST_REFUSED_PAUSE)
