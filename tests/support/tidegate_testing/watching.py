"""A recorder of everything that objects were: each version of each, in order, and none missed. Does I/O in a thread.

For what lasts only a moment: asking again and again finds it by luck, a watch brings it::

    with watched(kubectl, "sapp", namespace) as seen:
        kubectl.patch("sapp", "orders", namespace, change)
        seen.wait_for("the restart", lambda version: version.object["status"]["phase"] == "Running", timeout=60)
    assert [phase_of(version) for version in seen.versions("orders")] == ["Running", "Stopping", "Running"]
"""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

import urllib3

from devcluster.kubeapi import RequestFailedError, shown
from tidegate_testing.kubectl import Kubectl

T = TypeVar("T")

_PAUSE = 0.2
_GENEROUS = 120.0
_THERE = "THERE"


@dataclass(frozen=True)
class Version:
    """What an object was from one change to the next.

    Attributes:
        change: THERE (when the recording began), ADDED, MODIFIED or DELETED.
        object: the object; with DELETED as it was last.
    """

    change: str
    object: dict[str, Any]

    @property
    def name(self) -> str:
        """Return the object's name."""
        return str(self.object["metadata"]["name"])

    @property
    def uid(self) -> str:
        """Return what tells the object from others that had its name."""
        return str(self.object["metadata"]["uid"])

    @property
    def number(self) -> int:
        """Return the resource version."""
        return int(self.object["metadata"]["resourceVersion"])


class VersionsMissedError(AssertionError):
    """The API server no longer had the changes after the last that was recorded: nobody knows what was missed."""


class Recording:
    """What was recorded; :func:`watched` makes one."""

    def __init__(self, kubectl: Kubectl, kind: str, namespace: str) -> None:
        """Start with what is there."""
        self._kubectl, self._kind, self._namespace = kubectl, kind, namespace
        there, self._version = kubectl.api.collection(kind, namespace)
        self._seen = [Version(_THERE, each) for each in there]
        self._news = threading.Condition()
        self._over = False
        self._missed = ""
        self._answer: urllib3.BaseHTTPResponse | None = None
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def versions(self, name: str = "") -> list[Version]:
        """Return what was recorded so far, in order: of one object, or of all; raise VersionsMissedError."""
        with self._news:
            self._require_all()
            return [version for version in self._seen if name in ("", version.name)]

    def wait_for(self, what: str, wanted: Callable[[Version], object], timeout: float) -> Version:
        """Return the first version, of those recorded before and those to come, that is ``wanted``.

        Args:
            what: the awaited version as a phrase, for the failure's message.
            wanted: says whether it is this one.
            timeout: seconds, a generous limit and never a measurement.

        Raises:
            AssertionError: it did not come; the text holds what was recorded last.
            VersionsMissedError: nobody knows whether it came.
        """
        end, asked = time.monotonic() + timeout, 0
        with self._news:
            while True:
                for version in self._seen[asked:]:
                    asked += 1
                    if wanted(version):
                        return version
                self._require_all()
                left = end - time.monotonic()
                if left <= 0:
                    last = self._seen[-1] if self._seen else "nothing"
                    raise AssertionError(f"waited {timeout:.0f} s for {what}; recorded last: {last}")
                self._news.wait(left)

    def catch_up(self) -> None:
        """Wait until everything is recorded that has happened by now; raise AssertionError."""
        there, now = self._kubectl.api.collection(self._kind, self._namespace)
        numbers = {each["metadata"]["uid"]: int(each["metadata"]["resourceVersion"]) for each in there}
        end = time.monotonic() + _GENEROUS
        with self._news:
            while not self._knows(numbers, int(now)):
                self._require_all()
                assert self._news.wait(end - time.monotonic()), f"the watch of {self._kind} brought nothing"

    def end(self) -> None:
        """Record no more."""
        with self._news:
            self._over = True
            if self._answer is not None:
                with contextlib.suppress(OSError, RuntimeError, ValueError):  # it may have ended by itself
                    self._answer.shutdown()
        self._thread.join(_GENEROUS)

    def _knows(self, numbers: dict[str, int], now: int) -> bool:
        newest = {version.uid: version for version in self._seen}
        if any(uid not in newest or newest[uid].number < number for uid, number in numbers.items()):
            return False
        # What is not in the list is gone, or came after it.
        gone = [version for uid, version in newest.items() if uid not in numbers and version.number <= now]
        return all(version.change == "DELETED" for version in gone)

    def _require_all(self) -> None:
        if self._missed:
            raise VersionsMissedError(f"versions of {self._kind} were missed: {self._missed}")

    # --- the thread ---------------------------------------------------------------------------------------------------

    def _follow(self) -> None:
        while not self._over and not self._missed:
            try:
                with self._kubectl.api.changes(self._kind, self._namespace, self._version) as answer:
                    self._read(answer)
            except RequestFailedError as failed:
                # Whoever asks too late is answered so at once; anything else passes: the watch goes on where it was.
                if failed.reason in ("Expired", "Gone"):
                    self._miss(str(failed))
            except (urllib3.exceptions.HTTPError, OSError, ValueError):
                pass
            if not self._over:
                time.sleep(_PAUSE)

    def _read(self, answer: urllib3.BaseHTTPResponse) -> None:
        with self._news:
            if self._over:
                return
            self._answer = answer
        try:
            for line in answer:
                self._take(json.loads(line))
                if self._over or self._missed:
                    return
        finally:
            with self._news:
                self._answer = None

    def _take(self, event: dict[str, Any]) -> None:
        changed = event["object"]
        if event["type"] == "ERROR":
            self._miss(str(changed.get("message")))
            return
        with self._news:
            self._version = changed["metadata"]["resourceVersion"]
            if event["type"] != "BOOKMARK":
                self._seen.append(Version(event["type"], shown(changed)))
            self._news.notify_all()

    def _miss(self, why: str) -> None:
        with self._news:
            self._missed = why
            self._news.notify_all()


@contextlib.contextmanager
def watched(kubectl: Kubectl, kind: str, namespace: str) -> Iterator[Recording]:
    """Record each version of each object of one kind while the context lasts; at its end nothing is missing.

    Raises:
        RequestFailedError: the API server does not answer, at the beginning or at the end.
        VersionsMissedError: a watch broke off, and the API server no longer had what came after.
    """
    recording = Recording(kubectl, kind, namespace)
    try:
        yield recording
        recording.catch_up()
    finally:
        recording.end()


class Watch:
    """A recording that is read once, in order: of one object, or of those with some labels, while they are there."""

    def __init__(self, kubectl: Kubectl, kind: str, namespace: str, *, name: str = "", selector: str = "") -> None:
        """Watch one object by its name, or those with the labels of ``selector``: ``key=value``, comma-separated."""
        self._where = (kubectl, kind, namespace)
        self._name = name
        self._labels = dict(each.split("=", 1) for each in selector.split(",") if each)
        self._read = 0

    def __enter__(self) -> Self:
        """Begin to watch: what is there by now is the first version."""
        self._recording = Recording(*self._where)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Watch no more."""
        self._recording.end()

    def until(self, what: str, choose: Callable[[dict[str, Any]], T], timeout: float = 600) -> T:
        """Return the first true value that ``choose`` makes of a version that it did not get before.

        Args:
            what: the awaited world as a phrase, for the failure's message.
            choose: gets each version once. An AssertionError counts as "not yet".
            timeout: seconds, a generous limit and never a measurement.

        Raises:
            AssertionError: no such version came; the text holds what was recorded last.
            VersionsMissedError: nobody knows whether it came.
        """
        found: list[T] = []
        recorded = 0

        def wanted(version: Version) -> bool:
            nonlocal recorded
            recorded += 1
            if recorded <= self._read:
                return False
            self._read = recorded
            if self._is_about(version):
                with contextlib.suppress(AssertionError):
                    found.append(choose(version.object))
            return bool(found and found[-1])

        self._recording.wait_for(what, wanted, timeout)
        return found[-1]

    def _is_about(self, version: Version) -> bool:
        labels = version.object["metadata"].get("labels", {})
        named = self._name in ("", version.name)
        return version.change != "DELETED" and named and self._labels.items() <= labels.items()
