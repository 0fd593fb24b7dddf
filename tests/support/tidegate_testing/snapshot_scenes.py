"""An application with one query and its snapshots, on a store in memory; for tests that look at one thing."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tidegate_spark.snapshots import take as taking
from tidegate_spark.snapshots.copying import Copiers, Progress
from tidegate_spark.snapshots.manifest import Application, Manifest
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.snapshots.take import Request
from tidegate_testing import fake_checkpoint
from tidegate_testing.fake_checkpoint import LAYOUT
from tidegate_testing.memory_store import Buckets, Call, MemoryStore
from tidegate_testing.store_actors import Actor

Watch = Callable[[Call], None]


@dataclass
class Scene:
    """Application ``orders`` in bucket ``here``, its queries in lineage 1."""

    buckets: Buckets = field(default_factory=Buckets)
    lineage: int = 1

    def store(self, watch: Watch = lambda call: None) -> MemoryStore:
        return MemoryStore(self.buckets, "here", watch)

    def repository(self, watch: Watch = lambda call: None) -> SnapshotRepository:
        return SnapshotRepository(self.store(watch), "apps/orders", lambda seconds: None)

    def root(self, query: str = "main") -> str:
        return f"apps/orders/lineages/{self.lineage}/{query}"

    def batches(self, number: int = 1, query: str = "main") -> None:
        """Let the query commit so many batches."""
        for _ in range(number):
            fake_checkpoint.write_batch(self.store(), self.root(query))

    def clean(self, keep: int = 1) -> None:
        """Let Spark clean up."""
        fake_checkpoint.clean(self.store(), self.root(), keep)

    def rewrite(self) -> None:
        """Let Spark write the newest state file again, with other bytes."""
        fake_checkpoint.rewrite_state(self.store(), self.root())

    def request(self, name: str, **fields: Any) -> Request:
        return Request(name, Application("tests", "orders", "uid-1", self.lineage, 3), **fields)

    def take(
        self,
        name: str,
        watch: Watch = lambda call: None,
        copiers: int = 1,
        report: Callable[[Progress], None] = lambda progress: None,
        now: float = 1000.0,
        **fields: Any,
    ) -> Manifest:
        """Take a snapshot."""
        request = self.request(name, **fields)
        return taking.take(self.repository(watch), LAYOUT, request, now, Copiers(copiers, report))

    def actor(self, name: str, **fields: Any) -> Actor:
        """Return somebody who is about to take a snapshot."""
        return Actor(name, lambda actor: self.take(name, actor._watch, **fields))

    def content(self, key: str) -> bytes:
        """Return an object of the application's; it is there."""
        stored = self.buckets.read("here", f"apps/orders/{key}")
        assert stored is not None, key
        return stored.body

    def keys(self, below: str) -> list[str]:
        """Return the application's keys below ``below``."""
        return [key.removeprefix("apps/orders/") for key in self.buckets.keys("here", f"apps/orders/{below}")]


def until(actor: Actor, verb: str, part: str, done: bool = True) -> None:
    """Let an actor go on until before or after a request to a key that has ``part`` in it."""
    while not actor.ended:
        call = actor.step()
        if call is not None and (call.verb, call.done) == (verb, done) and part in call.key:
            return
    raise AssertionError(f"no {verb} of {part}; it came to {actor.outcome!r}")
