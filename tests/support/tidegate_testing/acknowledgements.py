"""How soon an operator acknowledges edits that no driver notices: each application's latency. Does I/O.

A status acknowledges an edit when it has the edit's generation. A watch brings it, so that the time is that from the
request to the status and not one between two readings.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import median

from tidegate_testing.kubectl import Kubectl
from tidegate_testing.watching import Recording, Version

GENEROUS = 600.0


class Acknowledgements:
    """The latencies of some applications' edits, in seconds, by when they were made."""

    def __init__(self, kubectl: Kubectl, namespace: str, names: Sequence[str]) -> None:
        """Have edited none of them yet."""
        self._kubectl, self._namespace, self._names = kubectl, namespace, names
        self._seconds: dict[str, dict[str, list[float]]] = {}

    def edit_each(self, when: str, recording: Recording, times: int) -> None:
        """Edit each application so many times, each after the one before was acknowledged; raise AssertionError."""
        for _ in range(times):
            self._round(when, recording)

    def edit_until(self, when: str, recording: Recording, over: Callable[[], bool]) -> None:
        """Edit one application after the other, each at least once, until something is over; raise AssertionError."""
        self._round(when, recording)
        while not over():
            self._round(when, recording)

    def of(self, when: str) -> dict[str, list[float]]:
        """Return the latencies of that time by application."""
        return self._seconds[when]

    def table(self) -> str:
        """Return a line for each application: of each time, in milliseconds, the median and the longest."""
        head = [f"{when} ({sum(map(len, found.values()))} edits)" for when, found in self._seconds.items()]
        rows = [
            [name, *(f"{1000 * median(found[name]):.0f}, {1000 * max(found[name]):.0f}" for found in self._all())]
            for name in self._names
        ]
        lines = [["application: median, longest in ms", *head], ["-"] * (1 + len(head)), *rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def results(self) -> dict[str, float]:
        """Return of each time, in milliseconds: the median of all edits, the longest, and the slowest one's median."""
        made: dict[str, float] = {}
        for when, found in self._seconds.items():
            together = [seconds for each in found.values() for seconds in each]
            made |= {
                f"p50_ms_{when}": 1000 * median(together),
                f"longest_ms_{when}": 1000 * max(together),
                f"p50_ms_of_the_slowest_{when}": 1000 * max(map(median, found.values())),
                f"edits_{when}": len(together),
            }
        return made

    def _all(self) -> list[dict[str, list[float]]]:
        return list(self._seconds.values())

    def _round(self, when: str, recording: Recording) -> None:
        found = self._seconds.setdefault(when, defaultdict(list))
        for name in self._names:
            found[name].append(self._edit(name, recording))

    def _edit(self, name: str, recording: Recording) -> float:
        app = self._kubectl.api.get("sapp", name, self._namespace)
        assert app is not None, f"StreamingApp {self._namespace}/{name} does not exist"
        change = {"spec": {"restart": {"maxFailures": 51 + app["metadata"]["generation"] % 49}}}
        asked = time.monotonic()
        generation = self._kubectl.api.patch("sapp", name, self._namespace, change)["metadata"]["generation"]
        assert generation > app["metadata"]["generation"], f"{name} was not changed by {change}"

        def acknowledges(version: Version) -> bool:
            status = version.object.get("status", {})
            return version.name == name and status.get("observedGeneration", 0) >= generation

        recording.wait_for(f"the acknowledgement of generation {generation} of {name}", acknowledges, GENEROUS)
        return time.monotonic() - asked
