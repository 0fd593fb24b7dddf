"""Why the operator has no key for agents: clauses for logs. No I/O."""

from __future__ import annotations


def key_not_made(answer: object) -> str:
    return f"it cannot be made: {answer}"


def key_not_read(answer: object) -> str:
    return f"it cannot be read: {answer}"


def key_too_short(length: int, field: str) -> str:
    return f"it has no {length} bytes under {field!r}: restore it, or delete it, and another one is made"
