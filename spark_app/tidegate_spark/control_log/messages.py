"""Messages about control messages that are too old, or of an earlier application. No I/O."""

from __future__ import annotations

SENT_TO_ORIGIN = "It was sent to the application of the snapshot with which this one begins."
TAKEN_BACK_THERE = "A rollback of the application that this one was started from had undone the message."
LOG_BEGINS_LATER = (
    "The control log does not go back so far any more. A query that planned no batch for 30 days while others did has "
    "to start under another name."
)
