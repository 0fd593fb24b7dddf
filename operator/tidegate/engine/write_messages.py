"""Messages about what the API server does not let the operator write. No I/O."""

from __future__ import annotations


def refused(what: str, answer: str, fields: str = "") -> str:
    """Return the text; ``fields`` are those that are to be corrected, empty if nobody knows."""
    correct = fields or "what it names"
    return f"The API server refuses {what}: {answer.rstrip('.')}. Correct {correct}; Tidegate retries."


def write_refused(kind: str, name: str, answer: str) -> str:
    return refused(f"to change {kind} {name}", answer)
