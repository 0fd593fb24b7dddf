"""Snapshots of real checkpoints on this machine, and exports of them; the object store is in memory."""

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from tidegate_spark.contract.snapshot_protocol import ExportOrder, StateChoice
from tidegate_spark.exports.job import Exporter, Made
from tidegate_spark.exports.manifest import EXPORT_PREFIX
from tidegate_spark.snapshots.checkpoint import layout
from tidegate_spark.snapshots.copying import Copiers
from tidegate_spark.snapshots.manifest import Application
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.snapshots.take import Request, take
from tidegate_testing.memory_store import Buckets, MemoryStore
from tidegate_testing.streaming_queries import listing

PREFIX = "apps/shop/orders"
SNAPSHOT = "nightly-aabbccdd"


class SnapshotOf:
    """A snapshot of several queries' checkpoints."""

    def __init__(self, checkpoints: Mapping[str, Path]) -> None:
        """Take it, of the newest committed batch of each query."""
        self.store = MemoryStore(Buckets(), "bucket")
        self.repository = SnapshotRepository(self.store, PREFIX, lambda seconds: None)
        for query, checkpoint in checkpoints.items():
            for path in listing(checkpoint):
                self.store.put(self.repository.lineage_key(1, query, path), (checkpoint / path).read_bytes())
        request = Request(SNAPSHOT, Application("shop", "orders", "uid-1", 1), spark_version="4.2.1")
        self.manifest = take(self.repository, layout, request, 1000.0, Copiers(1))

    def export(self, spark: SparkSession, work: Path, name: str, form: str, *states: StateChoice) -> Made:
        """Export it; ``work`` is a directory of the process that does."""
        work.mkdir(parents=True, exist_ok=True)
        order = ExportOrder(SNAPSHOT, SNAPSHOT, name, form, states)
        return Exporter(self.repository, order, lambda: spark, work, Copiers(1)).run()

    def files(self, name: str) -> dict[str, bytes]:
        """Return the files of an export: path -> content."""
        root = self.repository.key(EXPORT_PREFIX, name) + "/"
        found = {}
        for entry in self.store.list(root):
            got = self.store.get(entry.key)
            assert got is not None
            found[entry.key.removeprefix(root)] = got[0]
        return found

    def put_down(self, name: str, directory: Path) -> str:
        """Write the files of an export below ``directory``; return the address of the manifest there."""
        for path, content in self.files(name).items():
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            (directory / path).write_bytes(content)
        return f"file://{directory}/manifest.json"
