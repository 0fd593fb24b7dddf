"""Whoever writes the control log, and whoever is killed in between: it is one sequence, every message is in it once,
and what was in force at a position that was handed out is in force there for ever."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tidegate_spark.control_log import log, log_reader
from tidegate_spark.control_log.entries import ControlLogError, Entry, Kind
from tidegate_spark.control_log.log import ControlLog
from tidegate_spark.control_log.log_objects import LostError
from tidegate_spark.control_log.reducer import State, reduce_entries
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_testing.control_log import BUCKET, PREFIX, Clock, keys, message, opened
from tidegate_testing.examples import gate_share
from tidegate_testing.memory_store import Buckets
from tidegate_testing.mistakes import Course, planted
from tidegate_testing.store_actors import Actor

Draw = Callable[[int, int], int]


@dataclass
class World:
    """Two driver processes of one application; the one that began first may not know that it was replaced."""

    draw: Draw
    buckets: Buckets = field(default_factory=Buckets)
    clock: Clock = field(default_factory=Clock)
    actors: list[Actor] = field(default_factory=list)
    reported: list[str] = field(default_factory=list)
    """Ids of the messages of which a process said that they are in the log."""
    handed_out: dict[int, State] = field(default_factory=dict)
    oldest: int = 0
    """Nobody needs what is before that."""
    wrong: list[str] = field(default_factory=list)
    lineage: int = 1
    markers: list[Entry] = field(default_factory=list)
    newest: str = ""
    """The process that has the fence."""
    removing: bool = False
    offered: list[Entry] = field(default_factory=list)

    def process(self, name: str) -> Actor:
        """Start a process that does whatever comes to it until it is killed or has done enough."""

        def work(actor: Actor) -> None:
            log = ControlLog(
                SnapshotRepository(actor.store(self.buckets, BUCKET), PREFIX, lambda seconds: None), self.clock
            )
            log.load()
            for _ in range(self.draw(1, 12)):
                try:
                    self.happen(log, self.newest == name)
                except LostError:
                    # Of one that was frozen, and does not know it, what it looks for may be removed meanwhile.
                    if self.newest == name:
                        raise

        self.newest = name
        return Actor(name, work)

    def happen(self, log: ControlLog, has_fence: bool) -> None:
        self.clock.now += self.draw(0, 3)
        what = self.draw(0, 9)
        if what <= 3:
            drafts = [self.some_message() for _ in range(self.draw(1, 3))]
            log.append(drafts)
            # Whoever hears that a message is logged removes it where it came from, with or without the fence.
            self.reported += [draft.id for draft in drafts]
        elif what <= 6:
            self.hand_out(log)
        elif what == 7:
            log.write_base()
        elif what == 8 and has_fence:
            self.remove(log)
        elif what == 9 and has_fence and not self.removing:
            self.roll_back(log)

    def remove(self, log: ControlLog) -> None:
        # A query has got on; positions before its last one but one are needed no more.
        positions = self.positions()
        self.oldest = positions[self.draw(0, len(positions) - 1)] if positions else 0
        self.removing = True
        try:
            log.remove_before(self.oldest)
        finally:
            self.removing = False

    def positions(self) -> list[int]:
        """Return what was handed out, and may be needed in the lineage as it is now."""
        gone = [(marker.of, marker.sequence) for marker in self.markers]
        return sorted(
            position
            for position in self.handed_out
            if position >= self.oldest and not any(low < position < high for low, high in gone)
        )

    def some_message(self) -> Entry:
        if self.offered and self.draw(0, 2) == 0:
            return self.offered[self.draw(0, len(self.offered) - 1)]
        expires = self.clock.now + self.draw(0, 4) if self.draw(0, 1) else 0.0
        self.offered.append(message(payload={"last": len(self.offered)}, expires=expires))
        return self.offered[-1]

    def hand_out(self, log: ControlLog) -> None:
        position = log.settle()
        state = log.state_at(position)
        known = self.handed_out.setdefault(position, state)
        if known != state:
            self.wrong.append(f"at {position} {known} was in force, and now {state} is")

    def roll_back(self, log: ControlLog) -> None:
        settled = log.settle()
        there = self.positions()
        if not there:
            return
        self.lineage += 1
        log.append([Entry(0, Kind.ROLLED_BACK, of=there[self.draw(0, len(there) - 1)], lineage=self.lineage)])
        behind = log.entries(settled, log.last, whole=False)
        self.markers += [entry for entry in behind if entry.lineage == self.lineage]
        self.hand_out(log)

    def check(self) -> list[str]:
        """Return what is wrong when everybody has ended."""
        for actor in self.actors:
            if isinstance(actor.outcome, Exception):
                self.wrong.append(f"{actor.name} raised {actor.outcome!r}")
        log = opened(self.buckets, self.clock)
        kept = [entry for entry in log.entries(log_begin(self.buckets), log.last) if entry.id]
        if len({entry.id for entry in kept}) != len(kept):
            self.wrong.append("a message is there twice")
        self.wrong += [f"{name} is not there" for name in self.reported if log.find(name) is None]
        needed = self.positions()
        for position, state in self.handed_out.items():
            if position in needed and log.state_at(position) != state:
                self.wrong.append(f"at {position} {state} was in force, and is not")
        return self.wrong


def log_begin(buckets: Buckets) -> int:
    return int(next(iter(keys(buckets, "bases")), "0").removesuffix(".json"))


def wrong_with(draw: Draw, steps: int) -> list[str]:
    world = World(draw)
    running = [world.process("one"), world.process("other")]
    world.actors += running
    frozen = 2
    for _ in range(steps):
        # One that is frozen for long finds places free again that others wrote, and removed.
        frozen = draw(0, 2) if draw(0, 99) == 0 else frozen
        number = draw(0, 1) if frozen == 2 else 1 - frozen
        if running[number].ended or draw(0, 40) == 0:
            running[number].kill()
            running[number] = world.process(f"process {len(world.actors)}")
            world.actors.append(running[number])
        running[number].step()
    for actor in running:
        actor.run()
    return world.check()


# Choices are made in the processes' own threads, where hypothesis makes none.
@pytest.mark.parametrize("seed", range(gate_share(200)))
def test_one_log_whoever_writes(seed: int) -> None:
    assert wrong_with(random.Random(seed).randint, 20 + seed) == []


def without_conditional_writes(patch: pytest.MonkeyPatch) -> None:
    def put(self: Buckets, bucket: str, key: str, body: bytes, etag: str | None) -> Any:
        return self.write(bucket, key, body)

    patch.setattr(Buckets, "write_if", put)


def with_bases_of_the_other_branch(patch: pytest.MonkeyPatch) -> None:
    def careless(state: State, entries: Any) -> State:
        later = [entry for entry in entries if entry.kind is not Kind.ROLLED_BACK or entry.of >= state.position]
        folded = reduce_entries(state, later)
        return replace(folded, position=entries[-1].sequence if entries else state.position)

    for module in (log, log_reader):
        patch.setattr(module, "reduce_entries", careless)


def without_a_look_behind_what_was_put(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ControlLog, "_confirm", lambda self: True)


MISTAKES = {
    each.__name__: each
    for each in (without_conditional_writes, with_bases_of_the_other_branch, without_a_look_behind_what_was_put)
}
PLANTED = planted(__file__, MISTAKES)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTED.assert_noticed(
        name,
        lambda: MISTAKES[name](monkeypatch),
        shows,
        lambda: next((seed for seed in range(40) if shows(seed)), None),
    )


@pytest.mark.long
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_noticed_by_what_is_recorded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTED.assert_recorded(name, lambda: MISTAKES[name](monkeypatch), shows)


def test_there_is_a_record_for_each_mistake_and_for_nothing_else() -> None:
    assert list(PLANTED.recorded()) == list(MISTAKES)


def shows(seed: Course) -> bool:
    """Return whether something is wrong with a log whose writers do so much."""
    try:
        return bool(wrong_with(random.Random(seed).randint, 300))
    except ControlLogError:
        return True
