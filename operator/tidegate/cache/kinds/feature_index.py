"""The interface of a feature's index: the main index holds it and reports applications to it. No I/O."""

from __future__ import annotations

from collections.abc import Collection

from tidegate.api.streaming_app import StreamingApp
from tidegate.engine.resource_key import Key


class FeatureIndex:
    """Called with each application that comes, changes or goes; a feature overrides only what concerns it."""

    def __init__(self, namespaces: Collection[str] = ("",)) -> None:
        """Start empty; ``namespaces`` are those whose lists will come, an empty name stands for all."""

    def note_name(self, app: Key) -> None:
        """Note that there is an application of this name, whether it can be read or not."""

    def note_app(self, app: StreamingApp) -> None:
        """Note a version of an application that was taken in."""

    def forget_app(self, app: Key) -> None:
        """Note that there is no application of this name any more."""
