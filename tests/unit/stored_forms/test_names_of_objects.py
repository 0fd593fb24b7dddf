"""Names of objects as somebody leaves them who may write to the bucket: what is no number is passed over.

Python takes ``²`` for a digit and for no number, and reads digits of other scripts as Spark does not.
"""

from collections.abc import Callable

import pytest

from tidegate_spark.contract.object_paths import EMPTY_START, is_number, left_after, of_queries_that_continue
from tidegate_spark.control.messages.ack_store import AckStore
from tidegate_spark.control_log.log_objects import LogObjects
from tidegate_spark.control_log.offsets import Positions
from tidegate_spark.queries.sinks.file_sinks import check_begins_here
from tidegate_spark.queries.source_cleaning import read_after
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_testing.control_log import BUCKET, PREFIX, repository_in
from tidegate_testing.memory_store import Buckets

FOREIGN = ("²", "٣", "9" * 300, "-1", "1 ", "0x1", "")
POSITION = b'v1\n{}\n{"tidegate-control": 4}'


def beside(folder: str, body: bytes, *whole: str) -> SnapshotRepository:
    """Return a storage in which a folder has foreign names beside whole ones."""
    buckets = Buckets()
    for name in (*whole, *(f"{name}{suffix}" for name in FOREIGN for suffix in ("", ".json"))):
        buckets.write(BUCKET, f"{PREFIX}/{folder}/{name}", body)
    return repository_in(buckets)


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_no_number_to_spark_is_none(name: str) -> None:
    assert not is_number(name)
    assert not is_number(f"{name}²")


def removes_old_accounts() -> bool:
    repository = beside("control/acks", b"", "000000000001.json")
    AckStore().forget(repository, 10_000, ())
    left = {entry.key.rpartition("/")[2] for entry in repository.store.list(repository.key("control/acks"))}
    return "000000000001.json" not in left and "².json" in left


def counts_one_commit() -> bool:
    check_begins_here(["1"], ["0", *FOREIGN])  # raises if there are several
    return True


READERS: dict[str, Callable[[], bool]] = {
    "segments of the control log": lambda: (
        LogObjects(beside("control/segments", b"", "000000000014.json")).numbers("control/segments") == [14]
    ),
    "pages of accounts": removes_old_accounts,
    "positions": lambda: Positions(2).oldest(beside("lineages/2/main/offsets", POSITION, "7")) == 4,
    "newest position": lambda: (
        Positions(2).asked(beside("lineages/2/main/offsets", POSITION, "7")) == frozenset({"main"})
    ),
    "log of a file source": lambda: read_after([*FOREIGN, "²" + ".compact"], lambda name: name, -1) == [],
    "commits of a query": counts_one_commit,
    "checkpoints that were left": lambda: left_after([f"left-after/{name}" for name in ("3", *FOREIGN)]) == 3,
    "empty starts": lambda: (
        of_queries_that_continue(
            {f"q{EMPTY_START}{name}": number for number, name in enumerate(("zz", *FOREIGN, "1f"))}, {}
        )
        == {f"q{EMPTY_START}1f": len(FOREIGN) + 1}
    ),
}


@pytest.mark.parametrize("reader", READERS)
def test_foreign_names_change_nothing(reader: str) -> None:
    assert READERS[reader]()
