"""What can happen, and how often: each function with ``@event(weight)`` takes part in schedules."""

from collections.abc import Callable

from tests.scenario.events import (  # noqa: F401 - they add theirs
    losses,
    messages,
    network,
    operators,
    people,
    pods,
    strangers,
    surroundings,
)
from tests.scenario.events.registry import EVENTS, Event
from tests.scenario.world import World


def choose(world: World) -> Event:
    """Return what happens next."""
    weights = [weight for weight, _ in EVENTS]
    return world.rng.choices([function for _, function in EVENTS], weights)[0]


def choose_among(*wanted: Event) -> Callable[[World], Event]:
    """Return what chooses one of these, each as often as any other."""
    return lambda world: world.rng.choice(wanted)
