"""Whoever takes, deletes, restores and collects, in whatever order, and whoever is killed in between: every snapshot
that is complete stays whole, and in the end nothing is left that nothing needs."""

import inspect
import random
import textwrap
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidegate_spark.snapshots import catalog, collect, library, restore, take
from tidegate_testing.snapshot_world import Choices, Story


def wrong_with(choices: Choices, happenings: int) -> list[str]:
    """Return what went wrong in a world in which so much happened, and everybody has ended."""
    story = Story(choices)
    for _ in range(happenings):
        story.go_on()
        if story.world.wrong:
            return story.world.wrong
    story.world.settle()
    return story.world.wrong


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), happenings=st.integers(5, 60))
def test_what_is_complete_stays_whole_and_nothing_else_is_left(data: st.DataObject, happenings: int) -> None:
    assert wrong_with(Choices(lambda low, high: data.draw(st.integers(low, high))), happenings) == []


@pytest.mark.parametrize("seed", range(100))
def test_long_stories(seed: int) -> None:
    assert wrong_with(Choices(random.Random(seed).randint), 30) == []


@dataclass(frozen=True)
class Mistake:
    """One that could be made: in this function, this text instead of that one."""

    owner: Any
    function: str
    right: str
    wrong: str

    def plant(self, monkeypatch: pytest.MonkeyPatch) -> None:
        original = getattr(self.owner, self.function)
        source = textwrap.dedent(inspect.getsource(original))
        assert source.count(self.right) == 1, f"{self.function} does not say {self.right!r} once"
        names: dict[str, Any] = {}
        exec(source.replace(self.right, self.wrong), original.__globals__, names)
        monkeypatch.setattr(self.owner, self.function, names[self.function])


MISTAKES = {
    "a name of an object is used again": Mistake(catalog, "reserve", 'f"{file}.{name}"', 'f"{file}.x"'),
    "references are given back while a snapshot is taken": Mistake(
        catalog,
        "reserve",
        "return _with(added, name, dataclasses.replace(snapshot, objects=snapshot.objects | sizes.keys())), names",
        "return _release_objects(_with(added, name, dataclasses.replace(snapshot, objects=frozenset(sizes))), "
        "snapshot.objects), names",
    ),
    "what others need is condemned": Mistake(
        catalog, "_release_objects", "dropped = frozenset(names) - needed", "dropped = frozenset(names)"
    ),
    "what is held is disposed of": Mistake(catalog, "dispose", "if snapshot.holders:", "if False:"),
    "an id is used again": Mistake(catalog, "begin", "name in catalog.gone", "False"),
    "what was disposed of is finished": Mistake(
        catalog, "_being_taken", "snapshot.state is State.DELETING", "snapshot.state is None"
    ),
    "the catalog is written whatever it is": Mistake(
        library.Library,
        "change",
        "encode(after), etag)",
        "encode(after), (self.store.get(self.catalog_key) or [None, None])[1])",
    ),
    "a manifest replaces another one": Mistake(
        take, "_publish", "library.store.put_if(key, body, None) is not None", "library.store.put(key, body) is None"
    ),
    "a copy's name does not say what was copied": Mistake(
        take, "_own_key", 'f"{source.path}.{content}"', "source.path"
    ),
    "objects are copied before they are referred to": Mistake(
        take, "_keys", "library.change(refer)", "refer(library.read())"
    ),
    "a restore does not hold": Mistake(
        restore,
        "restore",
        "origin.library.change(lambda it: catalog.hold(it, origin.id, holder))",
        "catalog.hold(origin.library.read(), origin.id, holder)",
    ),
    "strays are not looked for": Mistake(collect, "collect", "listing.snapshots, listing.objects, now", "[], [], now"),
    "strays are looked up in an old catalog": Mistake(
        collect,
        "collect",
        "listing = _list(library)",
        "old = library.read(); listing = _list(library); strays = listing.objects - old.objects.keys(); "
        "_delete(library, [library.key(manifest.object_key(name)) for name in strays])",
    ),
    "files beside a manifest are left": Mistake(collect, "collect", "!= known.snapshots[name].files", "is None"),
    "all beside the manifest is deleted": Mistake(
        collect, "_delete_beside", "*(library.key(file.key) for file in made.files)", ""
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_noticed(mistake: Mistake, monkeypatch: pytest.MonkeyPatch) -> None:
    mistake.plant(monkeypatch)
    assert any(wrong_with(Choices(random.Random(seed).randint), 30) for seed in range(STORIES))
