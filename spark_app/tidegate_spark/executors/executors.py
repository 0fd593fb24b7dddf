"""Changes and counts the executors of a running application. Talks to the JVM; decisions are pure.

Surplus executors are decommissioned: they get no more tasks, finish theirs, and exit. Shuffle files they wrote are
computed again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark import SparkContext

from tidegate_spark.executors.executor_back_off import BackOff
from tidegate_spark.process import start_messages as messages
from tidegate_spark.process.spark.sparkconf import DECOMMISSION

SURPLUS_SECONDS = 30.0
"""For how long there have to be too many before one goes that nobody asked to go: Spark knows of a lost executor for a
while after it has had another one made, and the newer one is the one that lives."""
_WHY = messages.FEWER_EXECUTORS

log = logging.getLogger("tidegate")


class Backend(Protocol):
    """What is asked of Spark's scheduler."""

    def registered(self) -> Sequence[str]:
        """Return the ids of the executors that are registered now, in any order."""

    def request(self, wanted: int) -> None:
        """Have so many: those missing are started, and those that are lost."""

    def release(self, ids: Sequence[str]) -> None:
        """Have these go when their tasks have ended."""


class Living(Protocol):
    """Knows which executors are there; see :class:`tidegate_spark.executors.living_executors.LivingExecutors`."""

    def check(self, now: float) -> frozenset[int] | None:
        """Return the numbers of those that are there, None if there is no news."""

    def hurry(self) -> None:
        """Ask again with the next look."""


class SparkBackend:
    """That of a running SparkContext; raises what Py4J raises."""

    def __init__(self, context: SparkContext) -> None:
        """Ask this one."""
        self._context = context

    def registered(self) -> Sequence[str]:
        """Return them; one call for all."""
        ids = str(self._context._jsc.sc().getExecutorIds().mkString(",")).split(",")
        return [each for each in ids if each not in ("", "driver")]

    def request(self, wanted: int) -> None:
        """Set Spark's own target."""
        jvm: Any = self._context._jvm
        nothing = jvm.PythonUtils.toScalaMap(jvm.java.util.HashMap())
        self._context._jsc.sc().requestTotalExecutors(wanted, 0, nothing)

    def release(self, ids: Sequence[str]) -> None:
        """Decommission them; at once and with their tasks, if ``spec.sparkConf`` has that switched off."""
        jvm: Any = self._context._jvm
        scala_context = self._context._jsc.sc()
        if self._context.getConf().get(DECOMMISSION, "false") != "true":
            scala_context.killExecutors(jvm.PythonUtils.toSeq(list(ids)))
            return
        backend = scala_context.schedulerBackend()
        info = jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo(_WHY, jvm.scala.Option.empty())
        for each in ids:
            # The target is set already, and Spark informs the executor: the call does neither.
            backend.decommissionExecutor(each, info, False, False)


@dataclass(frozen=True)
class Count:
    """Executors that are registered; those that go are not among those that run."""

    running: int
    leaving: int
    longest: str = ""
    """Id of the one that has been on its way out for longest; empty if none is."""
    leaving_since: float = 0.0
    """When that one was released, in monotonic seconds."""
    ended: int = 0
    """How many are gone though nobody asked for it."""
    held_until: float = 0.0
    """Until when no others are started, in monotonic seconds; in the past: they are."""


class Scale:
    """Keeps as many executors as are wanted, for one SparkContext, with pauses before those that end are replaced."""

    def __init__(self, backend: Backend, living: Living | None = None, instances: int = 0) -> None:
        """Start with as many as Spark was started with.

        Args:
            backend: Spark's scheduler.
            living: knows which executors are there; None: nobody does, and what ends is replaced at once.
            instances: as many as that.
        """
        self._backend, self._living, self._instances = backend, living, instances
        self._back_off = BackOff()
        self._target = instances
        """What Spark was asked for last."""
        self._applied: int | None = None
        self._leaving: dict[str, float] = {}
        """Ids, and when they were let go."""
        self._surplus_since: float | None = None

    def check(self, wanted: int | None, now: float) -> Count:
        """Have Spark do what is wanted, and count.

        Args:
            wanted: by the last command; None: there was none.
            now: monotonic seconds.

        Raises:
            Py4JError: there is no JVM, or it does not answer.
        """
        if wanted is not None:
            self._have(wanted, now)
        registered = frozenset(self._backend.registered())
        if self._living is not None:
            self._pace(self._living, self._instances if wanted is None else wanted, registered, now)
        self._leaving = {each: since for each, since in self._leaving.items() if each in registered}
        # The oldest of those that were let go at the same time: always the same one.
        longest = min(self._leaving, key=lambda each: (self._leaving[each], len(each), each), default="")
        running, since = len(registered) - len(self._leaving), self._leaving.get(longest, 0.0)
        return Count(running, len(self._leaving), longest, since, self._back_off.ended, self._back_off.held_until)

    def _pace(self, living: Living, wanted: int, registered: frozenset[str], now: float) -> None:
        """Have Spark replace executors that ended only when their pause is over."""
        numbers = _numbers(registered)
        self._back_off.note(numbers, now)
        enough = len(registered - self._leaving.keys()) >= wanted and self._target == wanted
        if enough and not self._back_off.misses(numbers):
            return
        alive = living.check(now)
        if alive is not None:
            self._back_off.check(alive, now)
        self._ask(self._back_off.target(wanted, now))

    def _ask(self, target: int) -> None:
        if target != self._target:
            log.info("executors: Spark's target is %d", target, extra={"action": "rescale"})
            self._request(target)

    def _request(self, target: int) -> None:
        self._backend.request(target)
        self._target = target

    def _have(self, wanted: int, now: float) -> None:
        is_new = wanted != self._applied
        if is_new:
            # The target first; otherwise Spark would replace the executor.
            self._request(wanted)
            self._note_wish(wanted)
        staying = _oldest_first(each for each in self._backend.registered() if each not in self._leaving)
        surplus = staying[wanted:]
        if not surplus:
            self._surplus_since = None
        elif is_new or self._is_lasting(now):
            log.info("executors: %s of %d go", ", ".join(surplus), len(staying), extra={"action": "rescale"})
            self._back_off.forgive(_numbers(surplus))
            self._backend.release(surplus)
            self._leaving |= dict.fromkeys(surplus, now)
            self._surplus_since = None
            # Where executors are ended at once, Spark lowers its target by as many, below what is wanted.
            self._request(wanted)
        self._applied = wanted

    def _note_wish(self, wanted: int) -> None:
        if self._living is not None:
            self._living.hurry()  # a pause under way counts for the new number, too
        self._back_off.begin_attempt()
        if wanted < (self._instances if self._applied is None else self._applied):
            self._back_off.forgive_starting(_numbers(self._backend.registered()))

    def _is_lasting(self, now: float) -> bool:
        if self._surplus_since is None:
            self._surplus_since = now
        return now - self._surplus_since >= SURPLUS_SECONDS


def _oldest_first(ids: Iterable[str]) -> list[str]:
    return sorted(ids, key=lambda each: (len(each), each))


def _numbers(ids: Iterable[str]) -> set[int]:
    return {int(each) for each in ids if each.isdecimal()}
