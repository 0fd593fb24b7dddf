"""Changes the spec of the application while it is under load and faults: its executors, and its state's partitions.

A repartition may end in any way that leaves state as it was: what is meant to be found is state that is wrong.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.chaos.faults import Change, Rescale
from tests.chaos.report import Rescaled
from tidegate_testing.waiting import wait_for

PARTITIONS = (3, 4, 5, 6, 8)
SETTLED_SECONDS = 600.0
"""The longest that is waited for the end of an upgrade: three attempts at a repartition, and a rollback."""
DONE, REFUSED = "Completed", "Refused"
ENDS = frozenset({DONE, REFUSED, "RolledBack", "Failed", "Withdrawn"})
LOST = "Lost"
"""How a repartition is counted whose record was lost before its end was seen."""
PUT_OFF = "StatePartitionsKept"
"""Why an upgrade is refused that begins again by itself, and so has not ended."""
BY_FAULTS = frozenset(
    {"BatchUncommitted", "CatalogLost", "DependencyUnavailable", "Fenced", "NoRoom", "DeadlineExceeded"}
)
"""Reasons for which a repartition is refused when something is killed, lost or away; any other is a mistake."""


class Application(Protocol):
    """The application as it is seen and changed in the API."""

    def get(self) -> dict[str, Any]:
        """Return its resource; raise OSError if the API server does not answer."""

    def patch(self, spec: Mapping[str, Any]) -> None:
        """Merge ``spec`` into its spec; raise OSError likewise."""


@dataclass
class Rescaler:
    """Rescales one application, one repartition after the other."""

    app: Application
    executors: int
    """As many as it has at first; it is given one more at most."""
    say: Callable[[str], None]
    problems: list[str] = field(default_factory=list)
    """What went wrong that no fault is a reason for."""
    _executors: int = 0
    _ends: Counter[str] = field(default_factory=Counter)
    _asked: tuple[object, ...] | None = None
    """By what the upgrade was known that was there before the repartition that is under way."""

    @property
    def rescaled(self) -> Rescaled:
        """What came of all so far."""
        return Rescaled(self._executors, dict(sorted(self._ends.items())))

    @property
    def under_way(self) -> bool:
        """Whether a repartition was begun whose end was not seen."""
        return self._asked is not None

    def change(self, change: Change) -> None:
        """Change the spec: executors at once, partitions after the end of what is under way.

        Raises:
            AssertionError: that does not end, or the API server does not answer.
        """
        if change.what is Rescale.PARTITIONS:
            self._repartition(self.settle(), change)
            return
        now = self._check()["spec"]["executor"]["instances"]
        wanted = change.of([n for n in range(1, self.executors + 2) if n != now])
        self._patch({"executor": {"instances": wanted}})
        self._executors += 1
        self.say(f"{wanted} executors instead of {now}")

    def forget(self) -> None:
        """Count what is under way as one whose end nobody can tell: the status that has it is lost."""
        if self._asked is not None:
            self._asked = None
            self._ends[LOST] += 1

    def settle(self) -> dict[str, Any]:
        """Wait until no upgrade is under way and return the resource; raise AssertionError if that does not come."""

        def settled() -> dict[str, Any]:
            found = self._poll_once()
            assert self._has_settled(found), found.get("status", {}).get("upgrade", "no version is stable yet")
            return found

        return wait_for("the end of an upgrade", settled, SETTLED_SECONDS, 1.0)

    def _repartition(self, found: dict[str, Any], change: Change) -> None:
        status, asked = found["status"], found["spec"]["state"]["partitions"]
        wanted = change.of([n for n in PARTITIONS if n not in (asked, status["statePartitions"])])
        self._asked = _name_of(found)
        self._patch({"state": {"partitions": wanted}})
        self.say(f"{wanted} partitions of the state instead of {status['statePartitions']}")

    def _has_settled(self, found: dict[str, Any]) -> bool:
        status = found.get("status", {})
        upgrade = status.get("upgrade", {})
        if "lastStable" not in status or upgrade.get("phase", DONE) not in ENDS or upgrade.get("reason") == PUT_OFF:
            return False
        if _name_of(found) == self._asked:
            return False
        if self._asked is not None:
            self._note_end(upgrade)
        return True

    def _note_end(self, upgrade: dict[str, Any]) -> None:
        phase, reason = upgrade["phase"], upgrade.get("reason", "")
        self._asked = None
        self._ends[phase] += 1
        message = f"the repartition is {phase} ({reason}): {upgrade.get('message', '')}"
        self.say(message)
        if phase == REFUSED and reason not in BY_FAULTS:
            self.problems.append(message)

    def _check(self) -> dict[str, Any]:
        return wait_for("the application's resource", self._poll_once, SETTLED_SECONDS, 0.2)

    def _poll_once(self) -> dict[str, Any]:
        try:
            return self.app.get()
        except OSError as refused:
            raise AssertionError(f"cannot look: {refused}") from refused

    def _patch(self, spec: Mapping[str, Any]) -> None:
        def patched() -> bool:
            try:
                self.app.patch(spec)
            except OSError as refused:
                raise AssertionError(f"cannot patch: {refused}") from refused
            return True

        wait_for("the application's spec to be changed", patched, SETTLED_SECONDS, 0.2)


def _name_of(found: dict[str, Any]) -> tuple[object, ...]:
    upgrade = found.get("status", {}).get("upgrade", {})
    return upgrade.get("number"), upgrade.get("toSpecHash")
