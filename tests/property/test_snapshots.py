"""Whoever takes, deletes, restores and collects, in whatever order, and whoever is killed in between: every snapshot
that is complete stays whole, and in the end nothing is left that nothing needs."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidegate_testing.snapshot_world import Choices, World, chosen


def world_of(choices: Choices, happenings: int) -> World:
    """Return a world in which so much happened, and everybody has ended."""
    world = World(page=choices.pick((1000, 3)))
    world.buckets.opaque = choices.number(0, 3) == 0
    for _ in range(happenings):
        chosen(choices, world)
    world.settle()
    return world


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), happenings=st.integers(5, 60))
def test_what_is_complete_stays_whole_and_nothing_else_is_left(data: st.DataObject, happenings: int) -> None:
    choices = Choices(lambda low, high: data.draw(st.integers(low, high)))
    assert world_of(choices, happenings).wrong == []


@pytest.mark.parametrize("seed", range(20))
def test_long_stories(seed: int) -> None:
    assert world_of(Choices(random.Random(seed).randint), 300).wrong == []
