"""The key of a resource, namespace and name, and groups of keys. No I/O."""

from __future__ import annotations

from typing import TypeVar

Key = tuple[str, str]
"""Namespace and name of an application, or of another resource that has a queue of its own."""
Group = TypeVar("Group")


def discard(groups: dict[Group, set[Key]], group: Group, key: Key) -> None:
    """Take a key out of a group, and the group away with its last one."""
    members = groups.get(group)
    if members is not None:
        members.discard(key)
        if not members:
            del groups[group]
