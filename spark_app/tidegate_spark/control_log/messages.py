"""Messages about messages of an earlier application. No I/O."""

from __future__ import annotations

SENT_TO_ORIGIN = "It was sent to the application of the snapshot with which this one begins."
