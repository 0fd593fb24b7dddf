"""Back-off before executors are started in place of others that ended. Pure.

Spark replaces an executor within a second, for ever. Here the first end is replaced at once, then the pause grows from
10 seconds to 5 minutes, and starts over after ten minutes of life. During a pause Spark's target is lowered to the
number of executors at least a minute old: that ends none of them and replaces none that ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

FIRST_PAUSE, LONGEST_PAUSE, HEALTHY_SECONDS = 10.0, 300.0, 600.0
SETTLED_SECONDS = 60.0
"""After so long an executor is no attempt any more. Spark removes pods beyond its target that wait for a node for as
long, and of these it is asked for as many as there are by then."""


def pause_after(rounds: int) -> float:
    """Return how long nothing is started after so many rounds of ends in a row."""
    # Bounded: after days of ends, two to the power of their number is no float any more.
    return 0.0 if rounds < 2 else min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(rounds - 2, 16))


class BackOff:
    """The account of one driver process's executors; they are numbered from 1 in the order in which they are made."""

    def __init__(self) -> None:
        """Start with none."""
        self.ended = 0
        """How many are gone though nobody asked for it."""
        self.held_until = 0.0
        """Until when no others are started, by the clock of ``look``; 0 before the first pause."""
        self._seen: dict[int, float] = {}
        """Those that were there, and since when."""
        self._to_go: set[int] = set()
        """Those that end their tasks and go, or have gone: somebody wanted that."""
        self._dispensable: set[int] = set()
        """Those of which Spark may end some, as they had not registered when fewer were wanted."""
        self._newest = self._looked_to = 0
        self._rounds = 0
        self._attempt = (0, 0)
        """The number wanted by the attempt that is under way, and the number of its last executor; zeros: there is
        none."""

    def is_held(self, now: float) -> bool:
        """Return whether none is to be started now."""
        return now < self.held_until

    def target(self, wanted: int, now: float) -> int:
        """Return how many executors Spark is to be asked for."""
        if self._rounds < 2 or now - self.held_until >= HEALTHY_SECONDS:
            return wanted
        # Spark replaces those that go as soon as they have gone, unless its target is without them.
        staying = [since for each, since in self._seen.items() if each not in self._to_go]
        settled = sum(1 for since in staying if now - since >= SETTLED_SECONDS)
        if self.is_held(now):
            self._attempt = (0, 0)
            return min(wanted, settled)
        if wanted > self._attempt[0]:
            self._attempt = (wanted, self._newest + max(0, wanted - len(staying)))
        return wanted if self._newest < self._attempt[1] else min(wanted, settled)

    def begin_attempt(self) -> None:
        """Count again how many are missing: another number is wanted, which may be one that was wanted before."""
        self._attempt = (0, 0)

    def misses(self, registered: Set[int]) -> bool:
        """Return whether one that was there is not registered, and so may have ended."""
        return any(each not in registered for each in self._seen.keys() - self._to_go - self._dispensable)

    def forgive(self, numbers: Iterable[int]) -> None:
        """Take no notice of the end of these: they are to go."""
        self._to_go.update(numbers)

    def forgive_starting(self, registered: Set[int]) -> None:
        """Do the same for those that are not registered yet: fewer are wanted, and Spark removes such first."""
        self._dispensable.update(each for each in self._seen if each not in registered)

    def note(self, registered: Set[int], now: float) -> None:
        """Take in who is registered, where nobody has looked at pods."""
        for each in registered:
            self._seen.setdefault(each, now)
        # Spark has kept these.
        self._dispensable -= registered
        self._newest = max(self._newest, *registered, 0)

    def check(self, alive: Set[int], now: float) -> None:
        """Take in all that are there, starting ones included; whoever is not among them any more has ended.

        A number that was never seen is that of an executor that came and went between two looks.

        Args:
            alive: numbers of the executors whose pods have not ended.
            now: monotonic seconds.
        """
        self._newest = max(self._newest, *alive, 0)
        made = {*self._seen, *range(self._looked_to + 1, self._newest + 1)}
        gone = made - alive - self._to_go - self._dispensable
        lives = [now - self._seen.get(each, now) for each in gone]
        self._seen = {each: self._seen.get(each, now) for each in alive}
        self._to_go &= alive
        self._dispensable &= alive
        self._looked_to = self._newest
        if gone:
            self._note_round(len(gone), min(lives), now)

    def _note_round(self, number: int, shortest: float, now: float) -> None:
        self.ended += number
        if self.is_held(now):
            return  # they belong to the round whose pause is under way
        if shortest >= HEALTHY_SECONDS or now - self.held_until >= HEALTHY_SECONDS:
            self._rounds = 0
        self._rounds += 1
        self.held_until = now + pause_after(self._rounds)
