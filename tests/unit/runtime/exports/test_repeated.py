"""An export that is made again under its number: what is complete is found, and never written over. No Spark."""

from pathlib import Path

import pytest

from tidegate_spark.contract.snapshot_protocol import ExportOrder, StateChoice
from tidegate_spark.exports import formats, job
from tidegate_spark.exports.errors import ExportExistsError
from tidegate_spark.exports.manifest import ExportedTable
from tidegate_spark.exports.tables import Table
from tidegate_spark.snapshots.copying import Copiers
from tidegate_spark.snapshots.manifest import Application, Manifest
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_testing.memory_store import Buckets, MemoryStore

SNAPSHOT = Manifest(1, "a", 0.0, "", Application("shop", "orders", "u", 1), {}, ())
TABLES = [Table(0, "stateStoreSave", "default", "rows"), Table(1, "dedupe", "default", "rows")]
ROOT = "apps/orders/exports/mine-1-1"


class World:
    """A storage, and exporters whose Spark writes what it is told to."""

    def __init__(self, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store = MemoryStore(Buckets(), "here")
        self.repository, self.work, self.written = SnapshotRepository(self.store, "apps/orders"), work, 0
        self.body = b"rows"
        monkeypatch.setattr("tidegate_spark.exports.job.manifest.read", lambda *_: SNAPSHOT)
        monkeypatch.setattr(job, "damages", lambda _: [])
        monkeypatch.setattr(job.Exporter, "_plan", lambda *_: {"main": TABLES})

        def write(exporter: job.Exporter, made: Manifest, wanted: dict[str, list[Table]]) -> list[ExportedTable]:
            return self.write(exporter.order.format, wanted["main"])

        monkeypatch.setattr(job.Exporter, "_write_all", write)

    def write(self, form: str, tables: list[Table]) -> list[ExportedTable]:
        self.written += 1
        found = []
        for table in tables:
            file = table.file("main", formats.SUFFIXES[form])
            self.store.put(f"{ROOT}/{file}", self.body)
            known = ("main", table.operator, table.operator_name, table.name, table.kind)
            found.append(ExportedTable(*known, file, 1, len(self.body), "", "{}"))
        return found

    def content(self, number: int) -> bytes | None:
        found = self.store.get(f"{ROOT}/main/{number}-default.csv")
        return found[0] if found is not None else None

    def export(self, form: str = "CSV", tables: int = 2) -> job.Made:
        states = tuple(StateChoice("main", number, "default") for number in range(tables))
        order = ExportOrder("mine-1", "a", "mine-1-1", form, states)
        return job.Exporter(self.repository, order, lambda: pytest.fail("Spark"), self.work, Copiers(1)).run()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def test_what_is_complete_is_found_and_not_made_again(world: World) -> None:
    first = world.export()
    world.body = b"another Spark's"
    assert (world.export(), world.written) == (first, 1)
    assert [world.content(number) for number in range(2)] == [b"rows", b"rows"]


@pytest.mark.parametrize("left", [None, b"row"], ids=["gone", "cut"])
def test_one_whose_files_are_gone_or_changed_is_refused_and_nothing_of_it_is_written(
    world: World, left: bytes | None
) -> None:
    world.export()
    world.body = b"another Spark's"
    world.store.delete([f"{ROOT}/main/1-default.csv"])
    if left is not None:
        world.store.put(f"{ROOT}/main/1-default.csv", left)
    with pytest.raises(ExportExistsError, match=r"gone or changed: main/1-default\.csv; .* delete the folder"):
        world.export()
    assert ([world.content(number) for number in range(2)], world.written) == ([b"rows", left], 1)


def test_one_whose_folder_was_deleted_is_made_again(world: World) -> None:
    first = world.export()
    world.store.delete([f"{ROOT}/{name}" for name in ("manifest.json", "main/0-default.csv", "main/1-default.csv")])
    assert (world.export(), world.written) == (first, 2)


@pytest.mark.parametrize(("form", "tables"), [("Parquet", 2), ("CSV", 1)])
def test_another_export_of_the_number_writes_nothing(world: World, form: str, tables: int) -> None:
    world.export()
    before = world.store.buckets.keys("here")
    with pytest.raises(ExportExistsError, match=r"take another number for spec\.export\.nonce"):
        world.export(form, tables)
    assert (world.store.buckets.keys("here"), world.written) == (before, 1)


def test_a_manifest_that_cannot_be_read_is_another_exports(world: World) -> None:
    world.store.put(f"{ROOT}/manifest.json", b"{")
    with pytest.raises(ExportExistsError, match=r"manifest\.json"):
        world.export()
    assert world.written == 0
