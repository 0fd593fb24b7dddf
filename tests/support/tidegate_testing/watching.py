"""A watch on objects of a real cluster: what is there for a moment is seen as well as what lasts. Runs kubectl."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

from tidegate_testing.kubectl import Kubectl

T = TypeVar("T")


class Watch:
    """Every version of some objects, in order, from the ones that are there when it begins."""

    def __init__(self, kubectl: Kubectl, kind: str, namespace: str, *, name: str = "", selector: str = "") -> None:
        """Watch one object by its name, or those that ``selector`` chooses."""
        chosen = ["--field-selector", f"metadata.name={name}"] if name else ["--selector", selector]
        self._what = f"{kind} {name or selector} in {namespace}"
        self._command = [
            *(str(kubectl.binary), "--kubeconfig", str(kubectl.kubeconfig)),
            *("get", kind, "-n", namespace, *chosen, "--watch", "--output-watch-events", "-o", "json"),
        ]
        self._error = ""
        self._seen: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        """Begin to watch."""
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
        )
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Watch no more."""
        self._process.kill()
        self._process.wait()
        self._thread.join(60)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def until(self, what: str, choose: Callable[[dict[str, Any]], T], timeout: float = 600) -> T:
        """Return the first true value that ``choose`` makes of a version that was not looked at before.

        Args:
            what: the awaited world as a phrase, for the failure's message.
            choose: gets each version once. An AssertionError counts as "not yet".
            timeout: seconds, a generous limit and never a measurement.

        Raises:
            AssertionError: no version came for that long, or the watch has ended; the text holds what was seen last.
        """
        end, last = time.monotonic() + timeout, "nothing"
        while True:
            try:
                version = self._seen.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"waited {timeout:.0f} s for {what}; last seen: {last}") from None
            assert version is not None, f"watch on {self._what} ended before {what}: {self._error}; last seen: {last}"
            try:
                found = choose(version)
                if found:
                    return found
                last = json.dumps(version.get("status", version))
            except AssertionError as not_yet:
                last = str(not_yet)

    def _read(self) -> None:
        assert self._process.stdout is not None
        text = ""
        for line in self._process.stdout:
            text += line
            try:
                event = json.loads(text)
            except ValueError:
                continue  # an event of several lines is not whole yet
            text = ""
            if event["type"] in ("ADDED", "MODIFIED"):
                self._seen.put(event["object"])
        assert self._process.stderr is not None
        self._error = self._process.stderr.read().strip()
        self._seen.put(None)
