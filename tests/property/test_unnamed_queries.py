"""Versions with unnamed queries come, go, crash and roll back: no query continues from the state of another one.

A model of an application: each version is a set of locations that its script gives to unnamed queries, started in any
order, and each process may end after any of its starts. A batch says in the world, beside the storage, which query
wrote it, and whether that was the only one of its version.
"""

from dataclasses import dataclass, field

from hypothesis import assume, given
from hypothesis import strategies as st

from tidegate_spark.queries.unnamed.naming import UndecidedError
from tidegate_spark.queries.unnamed.registry import UnnamedQueries
from tidegate_spark.snapshots.lineages import upgrade_pin
from tidegate_spark.snapshots.restore import Origin, Target, restore
from tidegate_testing.fake_checkpoint import LAYOUT
from tidegate_testing.snapshot_scenes import Scene

LOCATIONS = ("", "s3a://lake/a", "s3a://lake/b", "s3a://pond/a", "/ckpt/2026-11-27", "/ckpt/2026-11-28")


@dataclass(frozen=True)
class Writer:
    """Who wrote the latest batch of a checkpoint."""

    location: str
    of_version: frozenset[str]
    """The locations of its version that were started until then."""


@dataclass
class World:
    """An application's storage, and what nobody in it knows."""

    scene: Scene = field(default_factory=Scene)
    written: dict[str, Writer] = field(default_factory=dict)
    """Checkpoint -> who wrote it."""
    pinned: dict[str, dict[str, Writer]] = field(default_factory=dict)

    seen: dict[frozenset[str], set[str]] = field(default_factory=dict)
    """Version -> the locations of it that were started."""

    def run(self, locations: list[str], ends_after: int, batches: list[bool]) -> bool:
        """Run a process of a version; return whether it started its queries."""
        seen = self.seen.setdefault(frozenset(locations), set())
        sole = len(locations) == 1
        unnamed = UnnamedQueries(self.scene.lineage, self.scene.library, lambda site, name: sole)
        started: set[str] = set()
        for number, location in enumerate(locations[:ends_after]):
            try:
                name = unnamed.name(f"main.py:{number}", location, frozenset(started))
            except UndecidedError:
                return False
            assert name not in started
            started.add(name)
            before = self.written.get(name)
            if before is not None and before.location != location:
                assert before.of_version == {before.location}, f"{location!r} continues what {before} wrote"
                assert sole, f"{location!r}, one of {locations}, continues {name!r}, which {before} wrote"
            seen.add(location)
            for each, writer in self.written.items():
                if writer.of_version < seen:
                    self.written[each] = Writer(writer.location, frozenset(seen))
            if batches[number]:
                self.scene.batches(1, name)
                self.written[name] = Writer(location, frozenset(seen))
        return True

    def pin(self, name: str) -> None:
        """Note what a rollback is to restore, as the first process of a new version does before its script runs."""
        if self.written:
            upgrade_pin.order_of(self.scene.library(), name, self.scene.lineage, "", LAYOUT)
            self.pinned[name] = dict(self.written)

    def roll_back(self, name: str) -> None:
        """Have a new lineage start from what was pinned."""
        if name not in self.pinned:
            return
        library = self.scene.library()
        order = upgrade_pin.order_of(library, name, self.scene.lineage, "", LAYOUT)
        self.scene.take(name, exact=order.exact, alone=True)
        restore(Origin(library, name), Target(library, self.scene.lineage + 1), name)
        self.scene.lineage += 1
        self.written = self.pinned[name]


VERSIONS = st.lists(st.sampled_from(LOCATIONS), min_size=1, max_size=3, unique=True)


@given(st.data())
def test_no_query_continues_from_the_state_of_another_one(data: st.DataObject) -> None:
    world, stable = World(), data.draw(VERSIONS)
    # One without a location is refused where another one is the first.
    assume(world.run(stable, len(stable), [True] * 3))
    for number in range(data.draw(st.integers(1, 4))):
        version = data.draw(VERSIONS | st.just(stable))
        world.pin(f"up-{number}")
        runs = True
        for _ in range(data.draw(st.integers(1, 3))):
            order = data.draw(st.permutations(version))
            ends_after = data.draw(st.integers(1, len(version)))
            runs = world.run(order, ends_after, data.draw(st.lists(st.booleans(), min_size=3, max_size=3))) and runs
        # A version is stable when all of it has run.
        runs = world.run(version, len(version), [True] * 3) and runs
        if not runs or data.draw(st.booleans()):
            world.roll_back(f"up-{number}")
            # What ran before runs again: a rollback is never refused for the locations that it was written with.
            assert world.run(stable, len(stable), [True] * 3)
        else:
            stable = version
