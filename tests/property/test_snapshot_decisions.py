"""What holds for every course of events around a StreamSnapshot. Pure."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from tidegate.api.stream_snapshot import SnapshotPhase
from tidegate.api.streaming_app import DeletionPolicy
from tidegate.engine.rules.actions import PublishEvent, RemoveFinalizer
from tidegate.snapshots.actions import SnapshotPlan
from tidegate.snapshots.rules.plan import decide_snapshot
from tidegate_testing.snapshot_simulation import SnapshotWorld

STEPS = 80


def hold(world: SnapshotWorld) -> None:
    world.holder = True


def release(world: SnapshotWorld) -> None:
    world.holder = False


def fork(world: SnapshotWorld) -> None:
    world.forks = ("variant",)


def fork_begins(world: SnapshotWorld) -> None:
    world.forks = ()


def no_pods(world: SnapshotWorld) -> None:
    world.quota = True


def slow(world: SnapshotWorld) -> None:
    world.slow = True


def crowded(world: SnapshotWorld) -> None:
    world.crowded = True


EVENTS: dict[str, Callable[[SnapshotWorld], object]] = {
    "work": SnapshotWorld.work,
    "runs": SnapshotWorld.app_runs,
    "starts": SnapshotWorld.app_starts,
    "rests": SnapshotWorld.app_rests,
    "goes": SnapshotWorld.app_goes,
    "made anew": SnapshotWorld.app_is_made_again,
    "held": hold,
    "let go": release,
    "fork": fork,
    "fork begins": fork_begins,
    "quota": no_pods,
    "verify": SnapshotWorld.ask_to_verify,
    "export": SnapshotWorld.ask_for_export,
    "no export": SnapshotWorld.forgo_export,
    "slow": slow,
    "crowded": crowded,
    "delete": lambda world: world.delete(DeletionPolicy.DELETE),
    "delete and keep": lambda world: world.delete(DeletionPolicy.RETAIN),
}
courses = st.lists(
    st.tuples(st.sampled_from(sorted(EVENTS)), st.one_of(st.none(), st.integers(0, 5)), st.floats(0, 100)),
    max_size=14,
)
"""What happens, after how many actions the operator crashes then, and how many seconds pass."""


def step(world: SnapshotWorld, crash_after: int | None = None) -> SnapshotPlan | None:
    observation = world.observe()
    if observation is None:
        return None
    plan = decide_snapshot(observation, world.now)
    if any(isinstance(action, RemoveFinalizer) for action in plan.actions):
        assert observation.snapshot.metadata.deletion_timestamp is not None
        keeps = observation.snapshot.spec.deletion_policy is DeletionPolicy.RETAIN
        assert keeps or world.stored == "", "let go while the files are there"
        given_up = any(
            isinstance(action, PublishEvent) and action.reason == "SnapshotRetained" for action in plan.actions
        )
        assert world.stored != "taking" or given_up, "let go half taken, and nobody was told"
    was_ready = observation.snapshot.status.phase is SnapshotPhase.READY
    world.carry_out(plan, crash_after)
    if was_ready and world.snapshot is not None and world.snapshot.metadata.deletion_timestamp is None:
        assert (world.snapshot.status.phase, world.stored) == (SnapshotPhase.READY, "ready")
    return plan


def live(world: SnapshotWorld, course: list[tuple[str, int | None, float]]) -> None:
    for event, crash_after, seconds in course:
        EVENTS[event](world)
        world.now += seconds
        step(world, crash_after)


def settle(world: SnapshotWorld) -> None:
    plan = None
    for _ in range(STEPS):
        plan = step(world)
        changed = world.work()
        if plan is None:
            return
        if not plan.actions and not changed:
            if plan.wake_after is None:
                return
            world.now += plan.wake_after
    raise AssertionError(f"no rest after {STEPS} steps; the last plan: {plan}")


@given(courses)
def test_every_course_of_events_comes_to_rest(course: list[tuple[str, int | None, float]]) -> None:
    world = SnapshotWorld()
    live(world, course)
    world.quota, world.holder, world.forks = False, False, ()
    if world.app is None or not world.runs:
        world.app_runs()
    settle(world)
    if any(event.startswith("delete") for event, _, _ in course):
        assert world.snapshot is None
        assert world.pods == {}
    else:
        assert world.snapshot is not None
        assert world.snapshot.status.phase in (SnapshotPhase.READY, SnapshotPhase.FAILED)
        assert world.pods == {}
        assert world.snapshot.status.phase is not SnapshotPhase.FAILED or world.stored != "taking"
        if world.snapshot.status.phase is SnapshotPhase.READY and world.snapshot.spec.verify_nonce:
            done = world.snapshot.status.verification
            assert done is not None
            assert done.nonce == world.snapshot.spec.verify_nonce
        if world.snapshot.status.phase is SnapshotPhase.READY:
            asked, known = world.snapshot.spec.export, world.snapshot.status.export
            assert known is None or known.has_ended
            assert asked is None or (known is not None and known.nonce == asked.nonce)


@given(courses)
def test_what_is_kept_for_a_fork_is_whole(course: list[tuple[str, int | None, float]]) -> None:
    world = SnapshotWorld()
    for event, crash_after, seconds in course:
        live(world, [(event, crash_after, seconds)])
        found = world.snapshot
        ready = found.status.condition("Ready") if found is not None else None
        if ready is not None and ready.reason == "NeededByFork" and world.forks:
            assert world.stored == "ready"
