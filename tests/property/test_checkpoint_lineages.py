"""Retried batches, late snapshots and cleaning: what is read as needed is what Spark loads, no more and no less.

A small model of Spark's RocksDB writes a state store in checkpoint format 2 with changelogs, and loads it by Spark's
own rule (RocksDB.loadWithCheckpointId). A state is known by the attempts it was made of.
"""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_spark.snapshots.checkpoint.checkpoint import Checkpoint
from tidegate_spark.snapshots.checkpoint.rocksdb_files import store_files
from tidegate_spark.storage.store import SnapshotError
from tidegate_testing.spark_checkpoint import SparkCheckpoint

STORE = "state/0/0"
Chain = tuple[str, ...]
"""The names ``<version>_<id>`` of the attempts that a state was made of, the first one first."""


class CannotLoadError(Exception):
    """Spark would not start."""


@dataclass
class Store:
    """A state store on a disk and in the memory of the process that writes it."""

    files: SparkCheckpoint = field(default_factory=SparkCheckpoint)
    committed: Chain = ()
    lineage: Chain = ()
    headers: dict[str, Chain] = field(default_factory=dict)
    snapshots: dict[str, Chain] = field(default_factory=dict)
    number: int = 0

    def attempt(self, counts: bool, snapshot: bool) -> None:
        """Write the next version; the batch is committed if it ``counts``, else the process begins again."""
        self.number += 1
        name = f"{len(self.committed) + 1}_id{self.number}"
        self.headers[name] = self.lineage
        self.files.changelog(STORE, name, *self.lineage)
        if snapshot:
            self.upload((*self.committed, name))
        if counts:
            self.committed = (*self.committed, name)
            self.lineage = (*self.lineage, name)
        else:
            self.restart()

    def upload(self, chain: Chain) -> None:
        """Write a snapshot of a state, perhaps later than the state itself."""
        name = chain[-1]
        self.snapshots[name] = chain
        self.files.snapshot(STORE, name, f"{len(chain)}-{name}.sst")
        self.lineage = tuple(each for each in self.lineage if version(each) >= version(name))

    def restart(self) -> None:
        """Load what is committed."""
        if self.committed:
            name = self.committed[-1]
            self.lineage = (name,) if name in self.snapshots else (*self.headers[name], name)
        else:
            self.lineage = ()

    def clean(self) -> None:
        """Delete what is older than the newest snapshot of the committed state; Spark goes by versions."""
        kept = max((version(name) for name in self.snapshots if name in self.committed), default=0)
        for path in list(self.files):
            name = path.rpartition("/")[2]
            if name.endswith((".zip", ".changelog")) and version(name) < kept:
                del self.files[path]

    def load(self, names: set[str]) -> Chain:
        """Return the committed state by Spark's rule, of those files alone."""
        name = self.committed[-1]
        if f"{name}.zip" in names:
            lineage: Chain = (name,)
        elif f"{name}.changelog" in names:
            lineage = (*self.headers[name], name)
        else:
            raise CannotLoadError
        found = max((each for each in lineage if f"{each}.zip" in names), key=version, default=None)
        start = 0 if found is None else version(found)
        if found is not None and f"SSTs/{start}-{found}.sst" not in names:
            raise CannotLoadError
        later = sorted((each for each in lineage if version(each) > start), key=version)
        if [version(each) for each in later] != list(range(start + 1, version(name) + 1)):
            raise CannotLoadError
        if not all(f"{each}.changelog" in names for each in later):
            raise CannotLoadError
        return (*(self.snapshots[found] if found is not None else ()), *later)


def version(name: str) -> int:
    return int(name.partition("_")[0])


@given(st.lists(st.sampled_from(["batch", "snapshot", "failure", "failed snapshot", "late", "restart", "clean"])))
def test_what_is_read_as_needed_is_what_spark_loads_and_none_of_it_can_be_left_out(actions: list[str]) -> None:
    store = Store()
    store.attempt(counts=True, snapshot=False)
    for action in actions:
        match action:
            case "batch" | "snapshot":
                store.attempt(counts=True, snapshot=action == "snapshot")
            case "failure" | "failed snapshot":
                store.attempt(counts=False, snapshot=action == "failed snapshot")
            case "late":
                store.upload(store.committed)
            case "restart":
                store.restart()
            case "clean":
                store.clean()
    name = store.committed[-1]
    checkpoint = Checkpoint(store.files.listing, store.files.read)
    found = store_files(checkpoint, STORE, version(name), name.partition("_")[2], ())
    needed = {file.path[len(STORE) + 1 :] for file in found}
    assert store.load(needed) == store.committed
    for lost in needed:
        with pytest.raises(CannotLoadError):
            store.load(needed - {lost})
        less = SparkCheckpoint()
        less.update({f"{STORE}/{path}": store.files[f"{STORE}/{path}"] for path in needed - {lost}})
        with pytest.raises(SnapshotError):
            store_files(Checkpoint(less.listing, less.read), STORE, version(name), name.partition("_")[2], ())
