"""An order for an export in the process that carries it out: what it comes to, and what is said. No Spark."""

from pathlib import Path
from typing import Any

import pytest

from tidegate_spark.contract.protocol import EXIT_OK, Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import ExportOrder, SnapshotOrders, SnapshotReport, SnapshotState
from tidegate_spark.exports import checkpoint_copy, errors, job, order_execution, use
from tidegate_spark.exports.export_guard import refusal_of
from tidegate_spark.exports.manifest import ExportedQuery, ExportedTable, ExportManifest
from tidegate_spark.exports.use import Part, Uses
from tidegate_spark.snapshots.copying import Copiers, Progress
from tidegate_spark.snapshots.manifest import Application, File, Manifest
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.snapshots.service.operations import Carrier
from tidegate_spark.snapshots.service.pod import carry_out
from tidegate_spark.snapshots.service.worker import SnapshotWorker
from tidegate_spark.storage.store import SnapshotError, VanishedError
from tidegate_testing.driver_process import driver_config
from tidegate_testing.memory_store import Buckets, MemoryStore
from tidegate_testing.snapshot_scenes import Scene

ORDER = ExportOrder("mine-1", "a", "mine-1-1", "CSV")
DONE = SnapshotReport("mine-1", SnapshotState.EXPORTED, rows=5, manifest="s3://here/exports/mine-1-1/manifest.json")


class Scripted(Carrier):
    """Fails as it is told to, and then exports whatever is ordered."""

    def __init__(self, *failures: Exception) -> None:
        super().__init__(driver_config("orders", "main", Storage("s3://here/apps/orders")), Scene().repository)
        self.failures, self.attempts = list(failures), 0

    def export(self, order: ExportOrder, report: Any) -> SnapshotReport:
        self.attempts += 1
        report(Progress(1, 10, 3, 10))
        if self.failures:
            raise self.failures.pop(0)
        assert order == ORDER
        return DONE


def end(carrier: Scripted) -> tuple[int, SnapshotReport]:
    worker = SnapshotWorker(carrier, runs=False)
    worker.give(SnapshotOrders(export=(ORDER,)))
    now = [0.0]
    worker._clock = lambda: now[0]
    code = carry_out(worker, lambda seconds: now.__setitem__(0, now[0] + seconds))
    (report,) = worker.reports()
    return code, report


def test_one_that_is_carried_out_says_what_was_written() -> None:
    code, report = end(Scripted())
    assert (code, report.state, report.rows, report.manifest) == (EXIT_OK, SnapshotState.EXPORTED, 5, DONE.manifest)


@pytest.mark.parametrize(
    ("error", "reason", "attempts"),
    [
        (errors.StateNotFoundError("states[0] names no state."), Reason.STATE_NOT_FOUND, 1),
        (errors.UnsuitableFormatError("use Parquet."), Reason.FORMAT_UNSUITABLE, 1),
        (errors.ExportExistsError("is of another."), Reason.EXPORT_EXISTS, 1),
        (errors.ExportError("no PySpark."), Reason.EXPORT_FAILED, 1),
        (errors.StateUnreadableError("corrupt."), Reason.STATE_UNREADABLE, 2),
    ],
)
def test_what_does_not_pass_ends_it_in_its_own_words(error: Exception, reason: Reason, attempts: int) -> None:
    carrier = Scripted(error, error)
    code, report = end(carrier)
    assert (code, report.state, report.reason) == (EXIT_OK, SnapshotState.FAILED, reason)
    assert (report.message, carrier.attempts) == (str(error), attempts)


def test_a_format_that_is_none_is_no_order() -> None:
    worker = SnapshotWorker(Scripted(), runs=False)
    with pytest.raises(ValueError, match="'Xml' is none of JSONLines, CSV, Parquet"):
        worker.give(SnapshotOrders(export=(ExportOrder("mine-1", "a", "mine-1-1", "Xml"),)))


# --- which files of a snapshot an operator's state is made of ---

PATHS = (
    "commits/3",
    "metadata",
    "offsets/2",
    "offsets/3",
    "state/0/_metadata/v2/0",
    "state/0/_metadata/v2/0.crc",
    "state/0/0/4.zip",
    "state/0/0/SSTs/1.sst",
    "state/0/1/_metadata/schema",
    "state/0/_stateSchema/default/0_1",
    "state/11/_metadata/metadata",
    "state/11/0/4.delta",
)


def made() -> Manifest:
    files = tuple(File(query, path, f"files/{query}/{path}", 3, "e") for query in ("main", "other") for path in PATHS)
    return Manifest(1, "a", 0.0, "", Application("shop", "orders", "u", 1), {}, files)


def test_an_operators_files_are_told_from_those_that_describe_it() -> None:
    assert checkpoint_copy.operators_of(made(), "main") == (0, 11)
    assert [file.path for file in checkpoint_copy.stores_of(made(), "main", 0)] == [
        "state/0/0/4.zip",
        "state/0/0/SSTs/1.sst",
        "state/0/1/_metadata/schema",
    ]
    bones = [file.path for file in checkpoint_copy.bones_of(made(), "main")]
    # Without the checksum of what is written again for its place.
    assert bones == [
        *PATHS[:5],
        "state/0/_stateSchema/default/0_1",
        "state/11/_metadata/metadata",
    ]


def fetched(body: bytes | None, path: str, directory: Path) -> bytes:
    store = MemoryStore(Buckets(), "here")
    if body is not None:
        store.put("apps/orders/files/x", body)
    repository = SnapshotRepository(store, "apps/orders")
    file = File("main", path, "files/x", 3, "e")
    checkpoint_copy.fetch(repository, [file], directory, Copiers(1))
    return (directory / path).read_bytes()


def test_files_come_as_they_were_published_or_not_at_all(tmp_path: Path) -> None:
    assert fetched(b"abc", "state/0/0/4.zip", tmp_path) == b"abc"
    with pytest.raises(VanishedError, match="files/x is gone"):
        fetched(None, "state/0/0/4.zip", tmp_path)
    with pytest.raises(VanishedError, match="has 2 bytes by now"):
        fetched(b"ab", "state/0/0/4.zip", tmp_path)
    with pytest.raises(SnapshotError, match="is no path of a checkpoint"):
        fetched(b"abc", "../outside", tmp_path)


def test_what_a_killed_attempt_left_on_the_disk_goes_before_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "export-killed" / "checkpoints").mkdir(parents=True)
    (tmp_path / "others").mkdir()
    there: list[str] = []

    def run(exporter: job.Exporter) -> job.Made:
        there.extend(sorted(path.name for path in tmp_path.iterdir()))
        raise errors.StateNotFoundError("no such state")

    monkeypatch.setenv("TIDEGATE_WORK_DIRECTORY", str(tmp_path))
    monkeypatch.setattr(job.Exporter, "run", run)
    with pytest.raises(errors.StateNotFoundError):
        order_execution.carry_out(Scene().repository(), ORDER, Copiers(1))
    assert len(there) == 2
    assert "export-killed" not in there
    assert [path.name for path in tmp_path.iterdir()] == ["others"]


# --- what keeps a query from beginning with nothing ---


class Files:
    """The little of a Spark session that tells which files there are."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self._jvm = self._jsc = self.org = self.apache = self.hadoop = self.fs = self

    def Path(self, path: str) -> "Files":  # noqa: N802 - Hadoop's name
        assert path == "s3a://b/lineages/1/main/offsets"
        return self

    def hadoopConfiguration(self) -> None:  # noqa: N802 - Hadoop's name
        pass

    def getFileSystem(self, conf: None) -> "Files":  # noqa: N802 - Hadoop's name
        return self

    def exists(self, place: "Files") -> bool:
        return bool(self.names)

    def listStatus(self, place: "Files") -> tuple[str, ...]:  # noqa: N802 - Hadoop's name
        return self.names


EXPORT = "s3://b/exports/1/manifest.json"
TABLE = ExportedTable("main", 0, "transformWithStateInPySparkExec", "total", "value", "f", 1, 1, "h", "{}")
OF_KAFKA, OF_FILES = '{"orders":{"0":5}}', '{"logOffset":3}'
ASKED, SAYS = ("initial_state()", "starting_offsets()"), ("without_state()", "without_offsets()")


def made_of(*tables: ExportedTable, offsets: str = OF_KAFKA) -> ExportManifest:
    queries = {"main": ExportedQuery(3, {"0": offsets})}
    return ExportManifest(1, "CSV", "a", "shop/orders", 1, "4.2.1", queries, tables)


@pytest.fixture
def uses(monkeypatch: pytest.MonkeyPatch) -> Uses:
    """What the script asks for, beginning with nothing."""
    fresh = Uses()
    monkeypatch.setattr(use, "_uses", fresh)
    return fresh


def refusal(*batches: str) -> str:
    return refusal_of(Files(*batches), EXPORT, "main", "s3a://b/lineages/1/main")


def test_an_export_is_asked_for_its_state_and_for_where_its_inputs_go_on(uses: Uses) -> None:
    use.note(Part.OFFSETS, made_of(TABLE))
    assert all(word in refusal() for word in (*ASKED, SAYS[0]))
    assert refusal("0") == "", "it began long ago"
    use.note(Part.STATE, made_of(TABLE))
    assert refusal() == ""


def test_so_is_one_whose_state_alone_was_asked_for(uses: Uses) -> None:
    use.note(Part.STATE, made_of(TABLE))
    assert all(word in refusal() for word in (*ASKED, SAYS[1]))


def test_who_does_without_one_of_them_says_so(uses: Uses) -> None:
    use.note(Part.OFFSETS, made_of(TABLE))
    use.without_state()
    assert refusal() == ""


def test_who_does_without_the_offsets_says_so(uses: Uses) -> None:
    use.without_offsets()
    assert "asked for nothing" in refusal(), "nor for the state"
    use.note(Part.STATE, made_of(TABLE))
    assert refusal() == ""


def test_what_an_export_does_not_have_is_not_asked_for(uses: Uses) -> None:
    use.note(Part.OFFSETS, made_of())
    assert refusal() == ""


def test_sources_that_are_none_of_kafkas_begin_by_other_means(uses: Uses) -> None:
    use.note(Part.STATE, made_of(TABLE, offsets=OF_FILES))
    assert refusal() == ""


def test_a_query_that_starts_without_what_it_should_start_from_is_refused(uses: Uses) -> None:
    why = refusal_of(Files(), "s3://b/exports/1/manifest.json", "main", "s3a://b/lineages/1/main")
    assert "s3://b/exports/1/manifest.json (spec.startFrom.exportedState)" in why
    assert "tidegate_spark.initial_state()" in why
    # It began long ago.
    assert refusal("0", "1") == ""


def test_who_wants_neither_finds_in_the_refusal_what_to_call_for_that(uses: Uses) -> None:
    assert "tidegate_spark.without_state() and without_offsets()" in refusal(), "the field cannot be removed any more"
    use.without_state()
    use.without_offsets()
    assert refusal() == ""
