"""Versions with unnamed queries come, go, crash and roll back: no query continues from the state of another one.

A model of an application: each version is a set of locations that its script gives to unnamed queries, started in any
order, with or without a batch. Each process may end after any of its starts, or at a request that the storage does not
answer, carried out or not. Versions are rolled back to their pin, or to a snapshot of any time before. Who wrote the
latest batch of a checkpoint is kept in the world, beside the storage.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate_spark.queries.unnamed.naming import UndecidedError
from tidegate_spark.queries.unnamed.registry import UnnamedQueries
from tidegate_spark.snapshots.lineages import upgrade_pin
from tidegate_spark.snapshots.restore import Origin, Target, restore
from tidegate_spark.storage.s3_client import FaultError
from tidegate_testing.examples import gate_share
from tidegate_testing.fake_checkpoint import LAYOUT
from tidegate_testing.memory_store import Call
from tidegate_testing.snapshot_scenes import Scene

NOWHERE = ""
LOCATIONS = ("s3a://lake/a", "s3a://pond/a", "/ckpt/2026-11-27", "/ckpt/2026-11-28", NOWHERE)
Watch = Callable[[Call], None]


class End(Enum):
    """How a process ended."""

    RAN = "it started all that it was to start"
    REFUSED = "it was not known which query one is"
    FAULT = "the storage did not answer"


@dataclass(frozen=True)
class Kept:
    """What a lineage can start from."""

    name: str
    written: dict[str, str]
    version: tuple[str, ...]
    """That ran then."""


@dataclass
class World:
    """An application's storage, and what nobody in it knows."""

    scene: Scene = field(default_factory=Scene)
    written: dict[str, str] = field(default_factory=dict)
    """Checkpoint -> the location of whoever wrote its latest batch."""
    commits: int = 0

    def run(self, version: tuple[str, ...], order: list[str], batches: list[bool], watch: Watch) -> End:
        """Run a process of a version: start queries in this order."""
        sole = len(version) == 1
        unnamed = UnnamedQueries(
            self.scene.lineage, lambda: self.scene.repository(watch), lambda site, name: sole, beside=lambda work: None
        )
        started: dict[str, str] = {}
        for location, commits in zip(order, batches, strict=False):
            try:
                name = unnamed.name("main.py:1", location, frozenset(started))
            except UndecidedError:
                assert not sole or len(self.written) > 1, f"{location!r} is alone, and may be but one of {self.written}"
                return End.REFUSED
            except FaultError:
                return End.FAULT
            assert name not in started
            started[name] = location
            assert NOWHERE not in started.values() or len(started) == 1
            before = self.written.get(name)
            if before is not None and before != location:
                assert sole, f"{location!r}, one of {order}, continues {name!r}, which {before!r} wrote"
                assert len(self.written) == 1, f"{location!r} continues {before!r}, one of {self.written}"
            if commits:
                self.scene.batches(1, name)
                self.written[name] = location
                self.commits += 1
        return End.RAN

    def pin(self, name: str, version: tuple[str, ...]) -> Kept | None:
        """Note what a rollback is to restore, as the first process of a new version does before its script runs."""
        if not self.written:
            return None
        upgrade_pin.order_of(self.scene.repository(), name, self.scene.lineage, "", LAYOUT)
        return Kept(name, dict(self.written), version)

    def complete(self, pin: Kept) -> Kept:
        order = upgrade_pin.order_of(self.scene.repository(), pin.name, self.scene.lineage, "", LAYOUT)
        self.scene.take(pin.name, exact=order.exact, alone=True)
        return pin

    def snapshot(self, name: str, version: tuple[str, ...]) -> Kept | None:
        if not self.written:
            return None
        made = self.scene.take(name)
        assert made.queries.keys() == self.written.keys()
        return Kept(name, dict(self.written), version)

    def begin_lineage(self, kept: Kept, watch: Watch) -> None:
        """Have a new lineage start from what was kept, at the second try if the storage does not answer."""
        self.scene.lineage += 1
        for each in (watch, unwatched):
            try:
                target = Target(self.scene.repository(each), self.scene.lineage)
                restore(Origin(self.scene.repository(), kept.name), target, kept.name)
                break
            except ConnectionResetError:
                continue
        self.written = dict(kept.written)


def unwatched(call: Call) -> None:
    """Let every request through."""


def failing(at: int, done: bool) -> Watch:
    """Fail at one request, before or after it is carried out, and at all that follow."""
    left = at

    def watch(call: Call) -> None:
        nonlocal left
        if call.done is done:
            left -= 1
        if left < 0:
            raise ConnectionResetError("reset by peer")

    return watch


POOLS = st.lists(st.sampled_from(LOCATIONS), min_size=2, max_size=3, unique=True)
"""The locations of one application: few, for what goes wrong needs the same ones again."""
WATCHES = st.just(unwatched) | st.builds(failing, st.integers(0, 6), st.booleans())
BATCHES = st.just([False] * 3) | st.just([True] * 3) | st.lists(st.booleans(), min_size=3, max_size=3)


def versions_of(pool: list[str]) -> st.SearchStrategy[tuple[str, ...]]:
    """Return versions: as often as not one of a single query, which may move."""
    single = st.sampled_from(pool).map(lambda location: (location,))
    return single | st.lists(st.sampled_from(pool), min_size=2, max_size=3, unique=True).map(tuple)


def runs(world: World, version: tuple[str, ...], data: st.DataObject) -> bool:
    """Run all of a version, in any order; return whether it was not refused."""
    order = data.draw(st.permutations(version))
    return world.run(version, order, data.draw(BATCHES), unwatched) is End.RAN


@settings(deadline=None, max_examples=gate_share(450))
@given(st.data())
def test_no_query_continues_from_the_state_of_another_one(data: st.DataObject) -> None:
    world, kept, versions = World(), [], versions_of(data.draw(POOLS))
    stable = data.draw(versions)
    if not runs(world, stable, data):
        assert NOWHERE in stable
        assert len(stable) > 1
        return
    for number in range(data.draw(st.integers(1, 6))):
        snapshot = world.snapshot(f"nightly-{number}", stable) if data.draw(st.booleans()) else None
        kept += [snapshot] if snapshot is not None else []
        version, commits = data.draw(versions), world.commits
        pin = world.pin(f"up-{number}", stable)
        for _ in range(data.draw(st.integers(0, 3))):
            order = data.draw(st.permutations(version))[: data.draw(st.integers(1, 3))]
            world.run(version, order, data.draw(BATCHES), data.draw(WATCHES))
        if runs(world, version, data) and data.draw(st.booleans()):
            stable = version
        elif pin is None or (world.commits == commits and data.draw(st.booleans())):
            # What committed nothing is undone where it was; without a pin there was nothing to lose.
            assert pin is None or runs(world, stable, data)
            if pin is None:
                return
        else:
            kept.append(world.complete(pin))
            back = data.draw(st.sampled_from(kept))
            world.begin_lineage(back, data.draw(WATCHES))
            stable = back.version
            # What ran then runs again, whatever ran since, and whether its queries had batches.
            assert runs(world, stable, data)
