"""Lists the executor pods of this driver, starting ones included. Talks to the API server, in a thread of its own.

Spark knows only executors that have registered; one that fails at once never does.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from tidegate_spark.contract.protocol import LABEL_APP, DriverConfig
from tidegate_spark.executors.pods_api import EXECUTORS, PodsApi, executors_of
from tidegate_spark.process.environment import Environment

SOON_SECONDS, LATER_SECONDS, SOON_FOR_SECONDS = 2.0, 15.0, 60.0
"""Between two looks while something has changed within a minute, and afterwards: a shortage may last for days."""
_ENDED = ("Failed", "Succeeded")

log = logging.getLogger("tidegate")


def living(pods: dict[str, Any], prefix: str, pod_uid: str) -> frozenset[int]:
    """Return the numbers of the executors in a PodList that this driver's pod owns and that have not ended; pure."""
    found = set()
    for pod in executors_of(pods, prefix, pod_uid):
        metadata, phase = pod["metadata"], pod.get("status", {}).get("phase", "")
        number = metadata["name"].removeprefix(f"{prefix}-exec-")
        # Spark counts a pod that is being deleted as gone, and starts another one.
        if number.isdecimal() and phase not in _ENDED and "deletionTimestamp" not in metadata:
            found.add(int(number))
    return frozenset(found)


def reader(config: DriverConfig, environment: Environment) -> Callable[[], frozenset[int]]:
    """Return what reads them; it raises OSError if the API server does not answer."""
    selector = f"{EXECUTORS},{LABEL_APP}={config.app}"

    def read() -> frozenset[int]:
        api = PodsApi(config.namespace, environment.master.removeprefix("k8s://"))
        return living(api.list(selector), config.executor.pod_name_prefix, environment.pod_uid)

    return read


def _in_thread(do: Callable[[], None]) -> None:
    threading.Thread(target=do, name="living-executors", daemon=True).start()


class LivingExecutors:
    """Asks for them now and then, and never keeps anybody waiting."""

    def __init__(
        self, read: Callable[[], frozenset[int]], start: Callable[[Callable[[], None]], None] = _in_thread
    ) -> None:
        """``read`` asks the API server; ``start`` has something done beside everything else."""
        self._read, self._start = read, start
        self._answer: frozenset[int] | None = None
        self._asking = False
        self._due = self._looked_at = 0.0
        self._known: frozenset[int] = frozenset()
        self._changed_at = 0.0

    def hurry(self) -> None:
        """Ask again with the next look."""
        self._due = 0.0

    def check(self, now: float) -> frozenset[int] | None:
        """Return an answer that has come since the last look, None if there is none; asks again if that is due."""
        answer, self._answer = self._answer, None
        if now - self._looked_at > LATER_SECONDS:
            answer = None  # all ran meanwhile without a check: those that came since are not in it
        self._looked_at = now
        if answer is not None and answer != self._known:
            self._known, self._changed_at = answer, now
        if not self._asking and now >= self._due:
            soon = now - self._changed_at < SOON_FOR_SECONDS
            self._due = now + (SOON_SECONDS if soon else LATER_SECONDS)
            self._asking = True
            self._start(self._ask)
        return answer

    def _ask(self) -> None:
        try:
            self._answer = self._read()
        except (OSError, ValueError) as error:
            log.debug("executors: %s", error)  # the next look asks again
        finally:
            self._asking = False


def living_of(config: DriverConfig, environment: Environment) -> LivingExecutors | None:
    """Return what knows the executors of this driver, None if it has none: all is one process then."""
    return LivingExecutors(reader(config, environment)) if environment.on_kubernetes else None
