"""Whoever takes, deletes, restores and collects, in whatever order, and whoever is killed in between: every snapshot
that is complete stays whole, and in the end nothing is left that nothing needs."""

import functools
import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidegate_spark.snapshots import catalog, file_copies, repository, restore
from tidegate_spark.snapshots import collect as collecting
from tidegate_spark.snapshots import take as taking
from tidegate_testing.examples import gate_share
from tidegate_testing.mistakes import Mistake
from tidegate_testing.snapshot_retention import Keep
from tidegate_testing.snapshot_stories import Choices, Story
from tidegate_testing.snapshot_world import World
from tidegate_testing.store_actors import Actor

APP = "orders"


def wrong_with(choices: Choices, events: int) -> list[str]:
    """Return what went wrong in a world in which so much happened, and everybody has ended."""
    story = Story(choices)
    for _ in range(events):
        story.go_on()
        if story.world.wrong:
            return story.world.wrong
    story.world.settle()
    return story.world.wrong


@settings(max_examples=gate_share(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), events=st.integers(5, 40))
def test_what_is_complete_stays_whole_and_nothing_else_is_left(data: st.DataObject, events: int) -> None:
    assert wrong_with(Choices(lambda low, high: data.draw(st.integers(low, high))), events) == []


@pytest.mark.parametrize("seed", range(gate_share(60)))
def test_long_stories(seed: int) -> None:
    assert wrong_with(Choices(random.Random(seed).randint), 50) == []


Event = Callable[[World], Actor]


@dataclass(frozen=True)
class Tale:
    """Somebody is overtaken: ``first`` stops after any of its requests, ``then`` happens, and ``first`` goes on, or is
    killed and done again. Before all that the application has three snapshots, o0, o1 and o2."""

    first: Event
    then: tuple[Event, ...]
    before: tuple[Event, ...] = ()

    def wrong(self) -> list[str]:
        """Return what goes wrong, wherever it stops."""
        for goes_on in (True, False):
            steps = 0
            while True:
                world, ended = self._world(steps, goes_on)
                if world.wrong:
                    return [f"after {steps} steps, {goes_on=}: {wrong}" for wrong in world.wrong]
                if ended:
                    break
                steps += 2  # each request has two stops, and after one is before the next one
        return []

    def _world(self, steps: int, goes_on: bool) -> tuple[World, bool]:
        world = beginning().copy()
        for event in self.before:
            world.run(event(world))
        actor = self.first(world)
        for _ in range(steps):
            world.step(actor)
        ended = actor.ended
        for event in self.then:
            world.run(event(world))
        if not ended and not goes_on:
            world.kill(actor)
            world.run(self.first(world))
        world.settle()
        return world, ended


@functools.cache
def beginning() -> World:
    world = World()
    for _ in range(3):
        world.run(world.batch(APP))
        world.run(world.batch(APP))
        world.run(world.take(APP, world.request(APP)))
    return world


def take(name: str, exact: int | None = None) -> Event:
    def event(world: World) -> Actor:
        request = next((known for known in world.requests[APP] if known.id == name), None)
        return world.take(APP, request or world.request(APP, exact=exact))

    return event


def dispose(name: str) -> Event:
    return lambda world: world.dispose(APP, name)


def restore_to(app: str, name: str, keep: bool = False) -> Event:
    def event(world: World) -> Actor:
        known = (asked for asked in world.restores if (asked.target, asked.id) == (app, name))
        return world.restore(next(known, None) or world.ask_restore(APP, name, app, keep))

    return event


def batch(world: World) -> Actor:
    return world.batch(APP)


def clean(world: World) -> Actor:
    return world.clean(APP, 1)


def rewrite(world: World) -> Actor:
    world.rewrite(APP)
    return world.start("nothing", lambda repository: None, APP)


def collect(world: World) -> Actor:
    return world.collect(APP)


def retain_one(world: World) -> Actor:
    """Have the operator's retention dispose of all but one; the tale is of the first of those that go."""
    first, *others = world.retain(APP, Keep(1)) or [world.start("nothing", lambda repository: None, APP)]
    for actor in others:
        world.run(actor)
    return first


TALES = {
    "taken, and disposed of meanwhile": Tale(take("o3"), (dispose("o3"), collect)),
    "taken, and disposed of and asked for again": Tale(take("o3"), (dispose("o3"), collect, take("o3"))),
    "taken, and on its way out then": Tale(take("o3"), (dispose("o3"),)),
    "taken twice": Tale(take("o3"), (batch, take("o3"))),
    "taken twice, and all others go": Tale(take("o3"), (batch, take("o3"), retain_one, collect)),
    "taken twice, a file having changed": Tale(take("o3"), (rewrite, take("o3"))),
    "taken while Spark cleans": Tale(take("o3"), (batch, batch, clean)),
    "taken twice while Spark cleans": Tale(take("o3"), (batch, batch, batch, clean, take("o3"), collect)),
    "taken at its batch while Spark cleans": Tale(take("o3", exact=5), (batch, batch, clean)),
    "taken while what it shares is disposed of": Tale(take("o3"), (dispose("o2"), dispose("o1"), collect)),
    "taken while another one comes and goes": Tale(take("o3"), (take("o4"), dispose("o4"), collect), (batch,)),
    "collected while one is taken": Tale(collect, (batch, take("o3")), (dispose("o2"),)),
    "collected twice": Tale(collect, (collect,), (dispose("o1"), dispose("o2"))),
    "collected twice, and asked for again": Tale(collect, (collect, take("o1")), (dispose("o1"),)),
    "disposed of while it is restored": Tale(dispose("o0"), (restore_to("orders", "o0", keep=True), collect)),
    "expired while it is restored": Tale(retain_one, (restore_to("abroad", "o0", keep=True), collect)),
    "restored, and disposed of meanwhile": Tale(restore_to("orders", "o1"), (dispose("o1"), collect)),
    "forked, and disposed of meanwhile": Tale(restore_to("variant", "o1", keep=True), (dispose("o1"), collect)),
    "imported, and expired meanwhile": Tale(restore_to("abroad", "o0"), (retain_one, collect)),
    "restored twice": Tale(restore_to("orders", "o1"), (restore_to("orders", "o1"), dispose("o1"), collect)),
}


@pytest.mark.parametrize("tale", TALES.values(), ids=TALES)
def test_whoever_is_overtaken_after_any_of_its_requests_does_no_harm(tale: Tale) -> None:
    assert tale.wrong() == []


MISTAKES = {
    # Each with a tale that tells.
    "a name of an object is used again": (
        Mistake(catalog, "reserve", 'f"{file}.{name}"', 'f"{file}.x"'),
        "collected while one is taken",
    ),
    "what others need is condemned": (
        Mistake(catalog, "_release_objects", "dropped = frozenset(names) - needed", "dropped = frozenset(names)"),
        "taken, and disposed of meanwhile",
    ),
    "what is held is disposed of": (
        Mistake(catalog, "dispose", "if snapshot.holders:", "if False:"),
        "disposed of while it is restored",
    ),
    "an id is used again": (
        Mistake(catalog, "begin", "name in catalog.gone", "False"),
        "collected twice, and asked for again",
    ),
    "what was deleted is finished": (
        Mistake(catalog, "_being_taken", "snapshot.state is State.DELETING", "snapshot.state is None"),
        "taken, and on its way out then",
    ),
    "the catalog is written whatever it is": (
        Mistake(
            repository.SnapshotRepository,
            "change",
            "encode(after), etag)",
            "encode(after), (self.store.get(self.catalog_key) or [None, None])[1])",
        ),
        "taken, and disposed of meanwhile",
    ),
    "a manifest replaces another one": (
        Mistake(
            taking,
            "_publish",
            "repository.store.put_if(key, body, None) is not None",
            "repository.store.put(key, body) is None",
        ),
        "taken twice",
    ),
    "objects are copied before they are referred to": (
        Mistake(file_copies, "_refer", "repository.change(transition)", "transition(repository.read())"),
        "taken, and disposed of meanwhile",
    ),
    "a restore does not hold": (
        Mistake(
            restore,
            "restore",
            "reentry.hold(origin.repository, origin.id, holder)",
            "catalog.hold(origin.repository.read(), origin.id, holder)",
        ),
        "restored, and disposed of meanwhile",
    ),
    "strays are not looked for": (
        Mistake(
            collecting,
            "_without_strays",
            "if not known.serial or not (after.condemned or after != known):",
            "if True:\n        return known",
        ),
        "taken, and disposed of meanwhile",
    ),
    "strays are looked up in an old catalog": (
        Mistake(
            collecting,
            "collect",
            "listing, sparing = _list(repository), reentry.Sparing(repository)",
            "old = repository.read(); listing, sparing = _list(repository), reentry.Sparing(repository); "
            "strays = listing.objects - old.objects.keys(); "
            "_delete(repository, [repository.key(manifest.object_key(name)) for name in strays])",
        ),
        "collected while one is taken",
    ),
    "files beside a manifest are left": (
        Mistake(collecting, "collect", "!= known.snapshots[name].files", "is None"),
        "taken twice",
    ),
    "all beside the manifest is deleted": (
        Mistake(collecting, "_delete_beside", "*(repository.key(file.key) for file in made.files)", ""),
        "taken twice",
    ),
}


@pytest.mark.parametrize(("mistake", "tale"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_noticed(mistake: Mistake, tale: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mistake.plant(monkeypatch)
    beginning.cache_clear()
    try:
        assert TALES[tale].wrong()
    finally:
        beginning.cache_clear()
