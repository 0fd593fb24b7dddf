"""What can happen, and how often: each function with ``@happening(weight)`` takes part in schedules."""

from collections.abc import Callable

from tests.scenario.happenings import (  # noqa: F401 - they add theirs
    losses,
    messages,
    network,
    operators,
    people,
    pods,
    strangers,
    surroundings,
)
from tests.scenario.happenings.registry import HAPPENINGS, Happening
from tests.scenario.world import World


def choose(world: World) -> Happening:
    """Return what happens next."""
    weights = [weight for weight, _ in HAPPENINGS]
    return world.rng.choices([function for _, function in HAPPENINGS], weights)[0]


def choose_among(*wanted: Happening) -> Callable[[World], Happening]:
    """Return what chooses one of these, each as often as any other."""
    return lambda world: world.rng.choice(wanted)
