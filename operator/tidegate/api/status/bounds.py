"""The bounds of each list, map and text of a status, and cutting a status to them before it is written. No I/O.

A driver's program decides names, texts and numbers of queries. The API server refuses a status with one field that is
too long, and etcd an object over 1.5 MB; either would stop all writes of that status.
"""

from __future__ import annotations

from typing import Any

LONGEST_WORD, LONGEST_NAME, LONGEST_TEXT = 1024, 253, 32768
MOST_ITEMS, MOST_RESULTS = 128, 32
WHOLE = {"spec": 1024 * 1024, "toSpec": 1024 * 1024, "memory": 32768}
"""Of no use in part: written as it is, or not at all."""
_NAMES = frozenset({"name", "podName", "snapshotName", "credentialsSecretName", "serviceAccountName"})
_TEXTS = frozenset(
    {
        "message",
        "exception",
        "cause",
        "lost",
        "lostMessage",
        "offsets",
        "startingOffsets",
        "rollbackTo",
        "selector",
        "uri",
        "endpoint",
    }
)
_CUT = "…"


def longest(field: str) -> int:
    """Return how many characters a text may have, by the name of its field; that of a list's items is the list's."""
    if field in WHOLE:
        return WHOLE[field]
    if field in _NAMES:
        return LONGEST_NAME
    return LONGEST_TEXT if field in _TEXTS else LONGEST_WORD


def within_bounds(field: str, value: Any) -> Any:
    """Return a part of a status as it may be written: texts are cut, and of lists and maps the first items kept.

    Args:
        field: its name.
        value: as JSON has it; a tuple is a list.
    """
    if isinstance(value, str):
        most = longest(field)
        return value if len(value) <= most or field in WHOLE else value[: most - 1] + _CUT
    if isinstance(value, list | tuple):
        return type(value)(_distinct([within_bounds(field, item) for item in value[:MOST_ITEMS]]))
    if isinstance(value, dict):
        if field == "results":  # its names are the driver's, and say nothing of how long a value may be
            return {name: within_bounds("", item) for name, item in list(value.items())[:MOST_RESULTS]}
        return {name: within_bounds(name, item) for name, item in value.items()}
    return value


def _distinct(items: list[Any]) -> list[Any]:
    """Return the items without those whose name, which is their key for the API server, is another's once it is cut."""
    seen: set[str] = set()
    kept = []
    for item in items:
        name = item.get("name") if isinstance(item, dict) else None
        if name is None or name not in seen:
            kept.append(item)
        if name is not None:
            seen.add(name)
    return kept
