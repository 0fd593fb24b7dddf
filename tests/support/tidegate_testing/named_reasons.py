"""What applications of a namespace say of themselves, noted when it is seen first. Does I/O by the world's kubectl."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate_testing.waiting import wait_for
from tidegate_testing.world import World


@dataclass(frozen=True)
class Said:
    """A reason of the condition Ready, and words that its message has to have."""

    reason: str
    words: tuple[str, ...]


@dataclass
class Noted:
    """The conditions of applications, each from when it first had the reason that is expected of it.

    A driver that is started again says so for a moment; it ends in the same way, and the pauses between grow.
    """

    expected: Mapping[str, Said]
    conditions: dict[str, dict[str, Any]] = field(default_factory=dict)
    last: dict[str, dict[str, Any]] = field(default_factory=dict)

    def check(self, world: World, namespace: str) -> bool:
        """Note what is new; raise AssertionError with what is still awaited."""
        for app in world.kubectl.list("sapp", namespace):
            name, ready = app["metadata"]["name"], world.kubectl.condition(app, "Ready")
            self.last[name] = ready
            if name in self.expected and ready.get("reason") == self.expected[name].reason:
                self.conditions.setdefault(name, ready)
        waiting = {name: self.last.get(name) for name in self.expected if name not in self.conditions}
        assert not waiting, waiting
        return True

    def assert_words(self) -> None:
        """Assert that each message has its words, and that nothing that stands still is Ready."""
        wrong = {
            name: [condition["message"], *missing]
            for name, condition in self.conditions.items()
            if (missing := [word for word in self.expected[name].words if word not in condition["message"]])
        }
        assert not wrong, wrong
        assert {condition["status"] for condition in self.conditions.values()} <= {"False"}, self.conditions


def await_reasons(world: World, namespace: str, expected: Mapping[str, Said], timeout: float = 900) -> Noted:
    """Wait until each application, by its name, has said what is expected, with all words; return what they said."""
    noted = Noted(expected)
    wait_for("each reason to be named", lambda: noted.check(world, namespace), timeout=timeout, interval=0.5)
    noted.assert_words()
    return noted
