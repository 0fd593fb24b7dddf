"""What happens while the demo runs, shown as it happens: the resource's status, and decisions. Threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from confluent_kafka import KafkaException

from devcluster.demo.application import Application
from devcluster.demo.compare import TopicReader
from devcluster.demo.console import Narrator
from devcluster.demo.kubernetes import CommandError, Kubernetes

SECONDS_BETWEEN_POLLS = 1.5
SECONDS_BETWEEN_SHOWN_DECISIONS = 2.0
SHOWN_AT_ONCE = 3
CITY_NAMES = {"seattle": "Seattle", "san-francisco": "San Francisco"}


def headline(resource: Mapping[str, Any]) -> str:
    """Return what a person wants to know of a StreamingApp, in one line. Pure."""
    status = resource.get("status", {})
    ready: Mapping[str, Any] = next((c for c in status.get("conditions", ()) if c["type"] == "Ready"), {})
    executors = status.get("executors", {})
    restarts = status.get("driver", {}).get("restarts", 0)
    phase, reason = status.get("phase", "Pending"), ready.get("reason", "")
    shown = "ready" if ready.get("status") == "True" else f"not ready yet: {reason}" if reason else "not seen yet"
    return (
        f"{phase} ({shown}), epoch {status.get('epoch', 0)}, restarts {restarts}, "
        f"executors {executors.get('running', 0)} of {executors.get('wanted', 0)}"
    )


def spoken(decision: Mapping[str, Any]) -> str:
    """Return a decision for a person: city, hour, temperature, setting, decision. Pure."""
    city, _, shift = str(decision["sensor"]).rpartition("+")
    when = datetime.fromisoformat(decision["time"]).strftime("%d %b %H:%M")
    verdict = "too warm" if decision["decision"] else "too cold"
    setting = f"{decision['desired']:g} (-{decision['downDelta']:g} +{decision['upDelta']:g})"
    where = f"{CITY_NAMES.get(city, city):<13} {'+' + shift:>4}"
    return f"{where}  {when}  {decision['temperature']:.1f} °F, wanted {setting:<12} {verdict}"


class StatusWatch:
    """Shows each change of the resource's headline."""

    def __init__(self, narrator: Narrator, kubernetes: Kubernetes, application: Application) -> None:
        self._narrator, self._kubernetes, self._application = narrator, kubernetes, application
        self._last = ""
        self.resource: Mapping[str, Any] = {}

    def check(self) -> None:
        """Look once; an API server that does not answer is looked at again later."""
        try:
            found = self._kubernetes.get("sapp", self._application.name, self._application.namespace)
        except CommandError:
            return
        self.resource = found or {}
        now = headline(self.resource) if found else "gone"
        if now != self._last:
            self._last = now
            self._narrator.say(f"  {self._application.name}: {now}", "cyan")


class DecisionWatch:
    """Collects decisions as they come and shows a sample of them."""

    def __init__(
        self, narrator: Narrator, brokers: str, topic: str, report: Callable[[Mapping[str, Any]], str] = spoken
    ) -> None:
        """Read ``topic``; ``report`` returns a decision for a person."""
        self._narrator, self._reader, self._report = narrator, TopicReader(brokers, topic), report
        self._shown_at = 0.0
        self.consumed: list[dict[str, Any]] = []
        self.ids: set[str] = set()
        self.newest_at = time.monotonic()
        self.trouble: KafkaException | None = None

    def check(self) -> None:
        """Take what has come."""
        try:
            decisions = self._reader.poll(0.2)
        except KafkaException as error:
            self.trouble = error
            return
        if not decisions:
            return
        self.newest_at = time.monotonic()
        self.consumed += decisions
        self.ids |= {decision["id"] for decision in decisions}
        if self.newest_at - self._shown_at >= SECONDS_BETWEEN_SHOWN_DECISIONS:
            self._shown_at = self.newest_at
            for decision in decisions[:: max(1, len(decisions) // SHOWN_AT_ONCE)][:SHOWN_AT_ONCE]:
                self._narrator.say(f"  {self._report(decision)}")

    def close(self) -> None:
        """End the connection."""
        self._reader.close()


class Once:
    """Acts once, when a count has reached ``at``."""

    def __init__(self, action: Callable[[], object], at: int) -> None:
        self._action, self._at, self._done = action, at, False

    def __call__(self, count: int) -> None:
        """Act if it is time."""
        if not self._done and count >= self._at:
            self._done = True
            self._action()


class Repeatedly:
    """Calls a function again and again in a thread while the context lasts."""

    def __init__(self, action: Callable[[], None], pause: float) -> None:
        self._action, self._pause = action, pause
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._over.is_set():
            self._action()
            self._over.wait(self._pause)

    def __enter__(self) -> Repeatedly:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(timeout=30)
