"""The index of ControlMessages, by the application that each names. No I/O."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Collection, Mapping

from tidegate.api.control_message import ControlMessage, without_payload
from tidegate.cache.kinds.open_resources import OpenResources
from tidegate.cache.kinds.resource_cache import UnreadableResource, WatchedResources
from tidegate.control.observation import ControlMemory
from tidegate.engine.resource_key import Key, discard
from tidegate.kube.history import version_number

Stored = ControlMessage | UnreadableResource
_ENDED_IN_SIGHT = 128
"""Of an application's messages that have ended: more than one plan removes."""


class ControlIndex(WatchedResources[ControlMessage]):
    """The ControlMessages by key and by application; the memories are those of applications.

    Thousands that have ended may be there, and nothing is to be decided about them but when each goes.
    """

    def __init__(self, namespaces: Collection[str] = ("",)) -> None:
        """Start empty; ``namespaces`` are those whose lists will come, an empty name stands for all."""
        super().__init__(namespaces)
        self.memories: dict[Key, ControlMemory] = {}
        self._open: dict[Key, set[Key]] = {}
        self._ended: dict[Key, list[tuple[float, Key]]] = {}
        """Of each application those that only wait for their removal, the first to go first."""
        self._phases: dict[Key, Counter[str]] = {}
        self.waiting = OpenResources()
        """Those that were accepted."""

    def put(self, resource: Stored) -> bool:
        """Take in a version, as :meth:`WatchedResources.put` does, without the payload if it has ended."""
        if isinstance(resource, ControlMessage) and resource.is_final:
            resource = without_payload(resource)
        taken = super().put(resource)
        if taken and isinstance(resource, ControlMessage):
            self._sort_in(resource)
        return taken

    def has_messages(self, app: Key) -> bool:
        """Return whether there is a message to an application of this name."""
        return app in self._of_app

    def in_order(self, app: Key) -> tuple[ControlMessage, ...]:
        """Return the messages to an application of this name in the order in which they are to take effect.

        Of those that have ended only the first to go: there may be any number of them, and the others' turn comes.
        """
        ended = (key for _, key in self._ended.get(app, ())[:_ENDED_IN_SIGHT])
        return tuple(sorted((self._known[key] for key in (*self._open.get(app, ()), *ended)), key=place_of))

    def phases(self, app: Key) -> Mapping[str, int]:
        """Return how many messages to an application of this name are in each phase."""
        return self._phases.get(app, Counter())

    def _sort_in(self, message: ControlMessage) -> None:
        app = message.app_key
        if message.status.phase is not None:
            self._phases.setdefault(app, Counter())[message.status.phase.value] += 1
        if _is_accepted(message):
            self.waiting.add(app, len(message.spec.payload))
        if not message.is_final or message.is_from_channel:
            self._open.setdefault(app, set()).add(message.key)
        elif message.metadata.deletion_timestamp is None:
            bisect.insort(self._ended.setdefault(app, []), (message.ended, message.key))

    def _take_out(self, key: Key) -> None:
        known = self._known.get(key)
        if known is not None:
            self._sort_out(known)
        super()._take_out(key)

    def _sort_out(self, message: ControlMessage) -> None:
        app, phase = message.app_key, message.status.phase
        if phase is not None:
            left = self._phases[app]
            left[phase.value] -= 1
            self._phases[app] = +left
        if _is_accepted(message):
            self.waiting.take(app, len(message.spec.payload))
        discard(self._open, app, message.key)
        ended = self._ended.get(app, [])
        place = (message.ended, message.key)
        at = bisect.bisect_left(ended, place)
        if ended[at : at + 1] == [place]:
            del ended[at]
        for groups in (self._phases, self._ended):
            if not groups.get(app):
                groups.pop(app, None)

    def note_name(self, app: Key) -> None:
        """Note that there is an application of this name."""
        self.waiting.note_app(app)

    def forget_app(self, app: Key) -> None:
        """Note that there is none any more."""
        self.waiting.forget_app(app)

    def memory(self, app: Key) -> ControlMemory:
        """Return what this process remembers of an application's messages."""
        return self.memories.get(app, ControlMemory())


def _is_accepted(message: ControlMessage) -> bool:
    """Return whether something is to come of it, and was once decided on: else it may still be refused."""
    return bool(message.status.conditions) and not message.is_final


def place_of(message: ControlMessage) -> tuple[float, int, str]:
    """Return by what messages are ordered.

    Times of creation are whole seconds. Of those of one second, the versions in which they were first seen show which
    came first; what was written to a message since has changed its version, so the first one is in its status.
    """
    version = message.status.order or message.metadata.resource_version
    return message.created, version_number(version), message.metadata.name
