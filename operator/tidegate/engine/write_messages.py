"""Messages about a resource that the API server does not let the operator change. No I/O."""

from __future__ import annotations


def write_refused(kind: str, name: str, answer: str) -> str:
    return (
        f"The API server refuses to change {kind} {name}: {answer.rstrip('.')}. Correct what it names; Tidegate "
        "retries."
    )
