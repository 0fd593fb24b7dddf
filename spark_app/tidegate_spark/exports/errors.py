"""What keeps an export from being made, or from being used. No I/O."""

from __future__ import annotations


class ExportError(Exception):
    """The message says for a person what is wrong, and where to fix it."""


class StateNotFoundError(ExportError):
    """What is to be exported is not among the state."""


class FormatUnfitError(ExportError):
    """A format cannot hold the state."""


class StateUnreadableError(ExportError):
    """Spark cannot read the state."""


class ExportExistsError(ExportError):
    """Another export has this id."""
