"""The errors of a writer of control messages. No I/O."""

from __future__ import annotations


class ControlWriterError(Exception):
    """A message cannot be sent, or nothing is known of it; the message is for a person."""


class InvalidMessageError(ControlWriterError, ValueError):
    """The application would reject the message; it was not sent."""

    def __init__(self, reason: str, message: str) -> None:
        """Say why, as the application would: by a word for programs, and for a person."""
        super().__init__(message)
        self.reason = reason


class BufferFullError(ControlWriterError):
    """So many messages wait to be written that this one was not taken; it was not sent."""


class NotWrittenError(ControlWriterError):
    """Messages are not known to be in the storage: each of them may be there or not.

    Sent again with the same id and source, by whomever, they are the same messages.
    """

    def __init__(self, message: str, ids: tuple[str, ...]) -> None:
        """Name them, in their order."""
        super().__init__(message)
        self.ids = ids


class NoOutcomeError(ControlWriterError):
    """There was no reply to a message in time; it may still come into force."""
