"""What is in force in a batch, as a program sees it. No I/O of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar, overload

from tidegate_spark.contract.control_protocol import RELOAD_CONFIG
from tidegate_spark.control.messages.handlers import Message, message_of
from tidegate_spark.control.messages.validation import is_a
from tidegate_spark.control_log.reducer import Model, State

T = TypeVar("T")


class Surroundings(Protocol):
    """What a worker keeps from batch to batch."""

    def trouble(self, sequence: int, message: str) -> None:
        """Report what is wrong with a message; the same once."""

    def made(self, kind: str) -> Any:
        """Return what this worker's handler returned last for a type."""

    def file_of(self, name: str, versions: Sequence[Model]) -> Path:
        """Return the file of the first of a model's versions that can be had.

        Raises:
            ControlError: there is none.
        """

    def loaded(self, name: str, versions: Sequence[Model], loader: Callable[[Path], Any]) -> Any:
        """Return what ``loader`` makes of the file of the first version that can be had and loaded; raises likewise."""


class Current:
    """Everything that is in force in one batch of one query."""

    def __init__(self, state: State, surroundings: Surroundings, query: str = "", batch: int = -1) -> None:
        """Show ``state``."""
        self._state, self._surroundings = state, surroundings
        self.query = query
        self.batch = batch
        """-1 outside of a batch."""

    @property
    def position(self) -> int:
        """The batch's position in the control log: messages up to this sequence count."""
        return self._state.position

    @property
    def config(self) -> Mapping[str, Any]:
        """All settings."""
        return self._state.config

    @overload
    def get(self, name: str) -> Any: ...
    @overload
    def get(self, name: str, default: T) -> T: ...
    @overload
    def get(self, name: str, default: T, kind: type[T]) -> T: ...
    def get(self, name: str, default: Any = None, kind: type[Any] | None = None) -> Any:
        """Return a setting, ``default`` if there is none.

        With ``kind`` a value of another type counts as none, and is reported in the acknowledgement of the message; a
        whole number is a float, too. Names with dots lead into objects: ``get("alerts.limit", 3)``.
        """
        value: Any = self._state.config
        for part in [name] if name in self._state.config else name.split("."):
            if not isinstance(value, Mapping) or part not in value:
                return default
            value = value[part]
        if kind is None or is_a(value, kind):
            return kind(value) if kind is float else value
        last = self._state.last.get(RELOAD_CONFIG)
        message = f"setting {name!r} is {value!r:.80}, and {kind.__name__} is asked for: {default!r} is used"
        self._surroundings.trouble(last.sequence if last is not None else 0, message)
        return default

    def last(self, kind: str) -> Message | None:
        """Return the newest message of a type, None if there was none."""
        entry = self._state.last.get(kind)
        return message_of(entry) if entry is not None else None

    def made(self, kind: str) -> Any:
        """Return what this worker's handler (``@control.on``) returned for the newest message of a type."""
        return self._surroundings.made(kind)

    def model(self, name: str) -> Path | None:
        """Return a file with the model that ``reload-model`` named, whole and with the checksum that it said.

        None if no such message was sent. If the new version cannot be had, the acknowledgement says so, and
        the previous one is returned.

        Raises:
            ControlError: it cannot be had, and none of those before it either.
        """
        versions = self._versions(name)
        return self._surroundings.file_of(name, versions) if versions else None

    def load(self, name: str, loader: Callable[[Path], T], default: T | None = None) -> T | None:
        """Return what ``loader`` makes of a model's file, once for each version and worker; ``default``: without one.

        If it raises, the acknowledgement says so, and what it makes of the previous version is returned.

        Raises:
            ControlError: see :meth:`model`; also if ``loader`` raises for each version.
        """
        versions = self._versions(name)
        return self._surroundings.loaded(name, versions, loader) if versions else default

    def _versions(self, name: str) -> tuple[Model, ...]:
        newest = self._state.models.get(name)
        return () if newest is None else (newest, *self._state.models_before.get(name, ()))
