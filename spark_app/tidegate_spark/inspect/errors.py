"""Errors of an inspection, with a message that says what to do. No I/O."""

from __future__ import annotations


class InspectionError(Exception):
    """There is no answer; ``status`` is what HTTP calls the cause."""

    status = 500
    retry_after_seconds = 0
    """When the same question may have an answer; 0: it will not by itself."""


class BadQuestionError(InspectionError):
    """The question cannot be meant; the message names the parameter."""

    status = 400

    def __init__(self, parameter: str, message: str) -> None:
        """Say which parameter is wrong, and how it can be right."""
        super().__init__(f"{parameter}: {message}")


class NotThereError(InspectionError):
    """What is asked about does not exist; the message says what does."""

    status = 404


class NotYetError(InspectionError):
    """Nothing is committed yet."""

    status = 409
    retry_after_seconds = 5


class BusyError(InspectionError):
    """Another inspection is under way."""

    status = 429
    retry_after_seconds = 5


class UnavailableError(InspectionError):
    """It cannot be looked now: the driver starts, stops, or Spark cleans up faster than is read."""

    status = 503
    retry_after_seconds = 5


class TooSlowError(InspectionError):
    """The time was over before there was anything to answer."""

    status = 504


class UnreadableError(InspectionError):
    """Spark cannot read the state; the message has its words."""
