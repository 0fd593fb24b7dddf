"""The interface of a controller of one kind of resource. No I/O."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from tidegate.engine.workqueue import WorkQueue

Running: TypeAlias = tuple[int, str, Callable[[], Awaitable[None]]]
"""How many of what are run by the leader."""


class Controller(Protocol):
    """One kind of resources: its watch, its queue, and what works on them."""

    name: str
    """Of the resources, in the plural."""
    queue: WorkQueue

    @property
    def complete(self) -> asyncio.Event:
        """Set once all are known that were there at the start."""

    @property
    def missing(self) -> str:
        """What is not known yet, for a person; empty if nothing is."""

    async def watch(self, namespace: str) -> None:
        """Keep the index up to date, for ever."""

    def running(self, concurrency: int) -> list[Running]:
        """Return what the leader runs, where it works on so many applications at a time."""
