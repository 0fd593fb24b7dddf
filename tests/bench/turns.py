"""The order in which what is compared takes turns. Pure."""

from collections.abc import Sequence


def turns(kinds: Sequence[str], rounds: int) -> list[str]:
    """Return the kinds of all trials: each round starts with another one than the round before."""
    return [kinds[(number + place) % len(kinds)] for number in range(rounds) for place in range(len(kinds))]
