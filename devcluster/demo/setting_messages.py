"""Settings of the demo's sensors as control messages: sent, confirmed by the log, and accounted for. Runs kubectl.

The order that the sample asks of its producers is kept here, too: settings that come one after the other are one
message, and are confirmed when it is in the application's control log. A batch that holds a reading which was sent
after that then holds, or follows, the message.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from devcluster.demo.messages import Messages, described
from devcluster.demo.scenario import Setting

TYPE = "settings"
"""The type of message that the sample listens to."""


class SettingMessages:
    """Sends settings.

    Raises:
        CommandError: from every method that sends or looks, if kubectl fails.
    """

    def __init__(self, messages: Messages, seconds: float, report: Callable[[str], None]) -> None:
        """Wait so long for a message to be in the log; ``report`` shows each that is."""
        self._messages, self._seconds, self._report = messages, seconds, report
        self._held: list[Setting] = []
        self.sent: dict[str, tuple[Setting, ...]] = {}
        """What each message has, by its name, in the order in which they were sent."""

    def hold(self, setting: Setting) -> None:
        """Take a setting, which goes with the next message."""
        self._held.append(setting)

    def publish(self) -> int:
        """Send what is held, if anything, as a message, and return how many settings that are once the log has it.

        Raises:
            RuntimeError: nobody will ever listen to the message.
            TimeoutError: the log does not have it in time.
        """
        if not self._held:
            return 0
        name, settings = f"settings-{len(self.sent):03}", tuple(self._held)
        self.sent[name] = settings
        self._held.clear()
        self._messages.send(name, TYPE, build_payload(settings))
        status = self._messages.await_log(name, self._seconds)
        if "sequence" not in status or status["phase"] in {"Failed", "Expired"}:
            raise RuntimeError(f"message {name} is not in force: {described(status)}")
        self._report(f"ControlMessage {name}: {len(settings)} settings, number {status['sequence']} in the log")
        return len(settings)

    def await_ends(self, seconds: float) -> dict[str, Mapping[str, Any]]:
        """Return the status of each message at its end; raise TimeoutError if one is not there in time."""
        return {name: self._messages.await_end(name, seconds) for name in self.sent}


def build_payload(settings: Iterable[Setting]) -> dict[str, Any]:
    """Return the payload of a message with settings. Pure."""
    return {"settings": [setting.fields() for setting in settings]}


def complaints(reported: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return what is wrong with messages, given their statuses in the order in which they were sent. Pure.

    Each is to be in force, with a number in the log after that of the one before, and in no earlier batch.
    """
    found = [f"{name}: {described(status)}" for name, status in reported.items() if not _is_in_force(status)]
    if found:
        return found
    for (before, earlier), (name, status) in itertools.pairwise(reported.items()):
        if status["sequence"] <= earlier["sequence"]:
            found.append(f"{name} has number {status['sequence']}, and {before} has {earlier['sequence']}")
        if status["batch"] < earlier["batch"]:
            found.append(f"{name} is in force from batch {status['batch']} on, and {before} from {earlier['batch']}")
    return found


def _is_in_force(status: Mapping[str, Any]) -> bool:
    return status.get("phase") == "Applied" and {"sequence", "batch"} <= status.keys()
