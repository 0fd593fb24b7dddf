"""A person puts the catalog of snapshots back to an earlier version, whoever is at work: no snapshot that was complete
loses a file before somebody disposes of it, and in the end all of them are in the catalog again.

With one of the safeguards taken out, some story soon ends otherwise.
"""

import random

import pytest

from tidegate_spark.snapshots import catalog, collect
from tidegate_testing.examples import gate_share
from tidegate_testing.mistakes import Course, Mistake, planted
from tidegate_testing.snapshot_stories import Choices, Story

EVENTS = 50
STORIES = 1500
"""So many are tried when the recorded one no longer tells."""


@pytest.fixture(autouse=True)
def requests_of_one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have so few objects deleted in several requests, between which the catalog may be put back."""
    monkeypatch.setattr(collect, "KEYS_OF_REQUEST", 1)


def wrong_in(seed: int) -> list[str]:
    """Return what goes wrong in a story."""
    story = Story(Choices(random.Random(seed).randint), put_back=True)
    for _ in range(EVENTS):
        story.go_on()
        if story.world.wrong:
            return story.world.wrong
    story.world.settle()
    return story.world.wrong


@pytest.mark.parametrize("seed", range(gate_share(100)))
def test_what_was_complete_stays_whole_and_is_entered_again(seed: int) -> None:
    assert wrong_in(seed) == []


MISTAKES = {
    # Of most safeguards, others hold what one would let go: tests/unit/runtime/snapshots/test_put_back.py has each by
    # itself.
    "what published ones need is condemned as a stray": Mistake(
        collect, "_without_strays", "spared.without(listing.objects)", "listing.objects"
    ),
    "nothing is entered again": Mistake(catalog, "may_be_entered", "name not in catalog.gone", "False"),
}
PLANTED = planted(__file__, MISTAKES)


def shows(seed: Course) -> bool:
    """Return whether something goes wrong in a story."""
    return bool(wrong_in(int(seed)))


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTED.assert_noticed_by_schedules(name, lambda: MISTAKES[name].plant(monkeypatch), shows, STORIES)


@pytest.mark.long
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_noticed_by_what_is_recorded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTED.assert_recorded(name, lambda: MISTAKES[name].plant(monkeypatch), shows)


def test_there_is_a_record_for_each_mistake_and_for_nothing_else() -> None:
    assert list(PLANTED.recorded()) == list(MISTAKES)
