"""What the watch and our own writes told of ControlMessages, by the application that each is sent to. No I/O."""

from __future__ import annotations

from collections.abc import Collection

from tidegate.model.control_message import ControlMessage, without_payload
from tidegate.observe.control_observation import ControlMemory
from tidegate.observe.versions import version_number
from tidegate.observe.watched import UnreadableResource, WatchedResources
from tidegate.workqueue import Key

Stored = ControlMessage | UnreadableResource


class ControlIndex(WatchedResources[ControlMessage]):
    """The ControlMessages by key and by application; the memories are those of applications."""

    def __init__(self, namespaces: Collection[str] = ("",)) -> None:
        """Start empty; ``namespaces`` are those whose lists will come, an empty name stands for all."""
        super().__init__(namespaces)
        self.memories: dict[Key, ControlMemory] = {}

    def put(self, resource: Stored) -> bool:
        """Take in a version, as :meth:`WatchedResources.put` does, without the payload if it has ended."""
        if isinstance(resource, ControlMessage) and resource.is_final:
            resource = without_payload(resource)
        return super().put(resource)

    def has_messages(self, app: Key) -> bool:
        """Return whether there is a message to an application of this name."""
        return app in self._of_app

    def in_order(self, app: Key) -> tuple[ControlMessage, ...]:
        """Return the messages to an application of this name in the order in which they are to take effect."""
        return tuple(sorted(self.of_app(app), key=place_of))

    def memory(self, app: Key) -> ControlMemory:
        """Return what this process remembers of an application's messages."""
        return self.memories.get(app, ControlMemory())


def place_of(message: ControlMessage) -> tuple[float, int, str]:
    """Return by what messages are ordered.

    Times of creation are whole seconds. Of those of one second, the versions in which they were first seen tell which
    came first; what was written to a message since has changed its version, so the first one is in its status.
    """
    version = message.status.order or message.metadata.resource_version
    return message.created, version_number(version), message.metadata.name
