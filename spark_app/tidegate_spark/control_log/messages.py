"""Messages about messages of an earlier application. No I/O."""

from __future__ import annotations

SENT_TO_ORIGIN = "It was sent to the application of the snapshot with which this one begins."
TAKEN_BACK_THERE = "A rollback of the application that this one was started from had undone the message."
