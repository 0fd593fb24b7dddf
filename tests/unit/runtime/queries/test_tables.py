"""Tables of ``toTable``: which a query may not write to, and whose the folder of one is. Pure."""

from collections.abc import Iterable
from types import SimpleNamespace

import pytest

from tidegate_spark.contract.protocol import WORK_DIRECTORY
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.queries.sinks import table_messages as messages
from tidegate_spark.queries.sinks import tables
from tidegate_spark.queries.sinks.file_sinks import Sink, is_queries_own
from tidegate_spark.queries.sinks.tables import (
    Given,
    Table,
    Tables,
    folder_of_pod,
    is_elsewhere,
    is_mounted,
    refusal,
)

IN_BUCKET, IN_POD = "s3a://bucket/warehouse/events", "file:/opt/spark/work-dir/spark-warehouse/events"


def table(
    provider: str = "parquet",
    location: str = IN_BUCKET,
    *,
    lasts: bool = False,
    exists: bool = False,
    own_path: bool = False,
) -> Table:
    catalog = "in the Hive metastore" if lasts else messages.CATALOG_IN_MEMORY
    return Table("spark_catalog.default.events", catalog, lasts, provider, location, exists, own_path)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (table(), ""),
        (table(lasts=True), ""),
        (table(location=IN_POD), "a folder that each pod has for itself"),
        (table(location=IN_POD, exists=True), "a folder that each pod has for itself"),
        (table(location=IN_POD, lasts=True), "a folder that each pod has for itself"),
        (table("delta"), "at the next start Spark would create the table of format delta again, and fail"),
        (table("delta", own_path=True), ""),
        (table("delta", exists=True), ""),
        (table("delta", lasts=True), ""),
        (table("iceberg", "", lasts=True), ""),
    ],
)
def test_a_table_is_refused_that_would_not_outlast_the_driver(found: Table, message: str) -> None:
    said = refusal(found, lambda location: location.startswith("file:"))
    assert message in said
    assert bool(said) == bool(message)
    assert not said or "spark_catalog.default.events" in said


def test_only_plain_files_have_the_log_of_a_file_sink() -> None:
    assert [table(provider).sink for provider in ("json", "delta")] == [Sink(IN_BUCKET), None]
    assert table(location="").sink is None


@pytest.mark.parametrize(
    ("entries", "last", "own"),
    [
        ([], -1, True),
        (["0", "1"], 1, True),
        (["0", "1", ".1.crc"], 2, True),
        (["9.compact", "10"], 10, True),
        (["9.compact", "10", "11"], 10, False),
        (["0"], -1, False),
    ],
)
def test_a_folder_is_a_querys_own_if_its_log_has_no_batch_that_the_checkpoint_has_not(
    entries: Iterable[str], last: int, own: bool
) -> None:
    assert is_queries_own(entries, last) is own


@pytest.mark.parametrize(
    ("location", "folder"),
    [
        ("s3a://bucket/warehouse", ""),
        ("file:/work/warehouse", "/work/warehouse"),
        ("file:///work/warehouse", "/work/warehouse"),
        ("FILE:/work", "/work"),
        ("/work/warehouse", "/work/warehouse"),
    ],
)
def test_a_folder_of_the_pod_is_known_by_its_address(location: str, folder: str) -> None:
    assert folder_of_pod(location) == folder


def test_a_volume_counts_as_shared_and_the_pods_own_file_system_does_not() -> None:
    assert is_mounted("/proc/sub/folder")
    assert not is_mounted("/no/such/folder")


@pytest.mark.parametrize("folder", ["/tmp/warehouse", f"{WORK_DIRECTORY}/warehouse"])
def test_a_volume_for_scratch_is_each_pods_own(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.path.ismount", lambda path: str(path) in ("/", "/tmp", WORK_DIRECTORY))
    assert not is_mounted(folder)


@pytest.mark.parametrize(
    ("commits", "entries", "elsewhere"),
    [
        ((), None, False),
        ((), ("0",), False),
        (("0", "1"), ("0", "1"), False),
        (("9", "10"), ("9.compact", "10"), False),
        (("0", "1"), None, True),
        (("0", ".0.crc"), (), True),
    ],
)
def test_earlier_batches_are_elsewhere_if_a_query_has_some_and_its_table_none(
    commits: Iterable[str], entries: Iterable[str] | None, elsewhere: bool
) -> None:
    assert is_elsewhere(commits, entries) is elsewhere


@pytest.mark.parametrize("exists", [False, True])
def test_a_table_that_is_another_one_than_before_is_told_at_any_start(
    exists: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the name that it had: a catalog or a warehouse that was changed goes by none of the query's own."""
    events: list[tuple[str, str, bool]] = []
    folders = {"s3a://bucket/c/offsets": ["0", "1"], "s3a://bucket/c/commits": ["0"]}
    monkeypatch.setattr(tables, "find", lambda *_: table(exists=exists, lasts=True))
    monkeypatch.setattr(tables, "names_in", lambda _, folder: folders.get(folder))
    of_driver = Tables(None, lambda *said: events.append(said), None, apart=True, pinned=False)  # type: ignore[arg-type] # asked by what is put in its place

    def start() -> None:
        of_driver.before_query(SimpleNamespace(_spark=None), "main", "s3a://bucket/c", "events", Given("parquet"))  # type: ignore[arg-type] # likewise

    start()
    ((reason, message, warning),) = events
    assert (reason, warning) == (Reason.TABLE_LOCATION, True)
    assert IN_BUCKET in message
    assert "None of the earlier batches of the query is there" in message
    folders[f"{IN_BUCKET}/_spark_metadata"] = ["0"]
    if exists:
        start()
        assert len(events) == 1
