"""Sources that clean up behind them: what is said of them at a start, and after a rollback. With a store in memory."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from tidegate_spark.contract.protocol import Pin, StartFrom, Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.rehearsal_protocol import Rehearsal
from tidegate_spark.queries.source_cleaning import Cleaning, SourceCleaning, cleaning_of, read_after
from tidegate_spark.storage.app_objects import AppObjects
from tidegate_testing.driver_process import driver_config
from tidegate_testing.memory_store import Buckets, MemoryStore

PLACE = Storage("s3://here/apps/orders")
DELETE, ARCHIVE = Cleaning("delete"), Cleaning("archive", "s3a://in/archive")
BACK = StartFrom(PLACE, "up-1", "rollback-up-1", lineage=1)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, None),
        ({"cleanSource": "off"}, None),
        ({"CLEANSOURCE": "Off", "sourceArchiveDir": "/archive"}, None),
        ({"cleansource": "DELETE"}, DELETE),
        ({"cleanSource": "archive", "sourcearchivedir": "s3a://in/archive", "path": "s3a://in/new"}, ARCHIVE),
    ],
)
def test_how_a_source_cleans_up_is_read_from_its_options(options: dict[str, str], found: Cleaning | None) -> None:
    assert cleaning_of(options.items()) == found


def entry(*files: tuple[str, int]) -> str:
    return "\n".join(["v1", *(json.dumps({"path": path, "timestamp": 1, "batchId": batch}) for path, batch in files)])


class World:
    """An application's storage, and the files of its source."""

    def __init__(self, files: Iterable[str] = (), **config: Any) -> None:
        self.files, self.buckets = set(files), Buckets()
        self.repository = AppObjects(MemoryStore(self.buckets, "here"), "apps/orders")
        self.reported: list[tuple[str, str, bool]] = []
        self.config = driver_config("app", "main.py", PLACE, **config)

    def put(self, lineage: int, path: str, text: str = "") -> None:
        self.repository.store.put(self.repository.lineage_key(lineage, "main", path), text.encode())

    def judge(self, cleaning: Cleaning = DELETE) -> str:
        reported = SourceCleaning(
            self.config,
            lambda: self.repository,
            self.files.__contains__,
            lambda reason, message, warning: self.reported.append((reason, message, warning)),
        )
        return reported.judge("main", cleaning)

    @property
    def reasons(self) -> list[str]:
        return [reason for reason, _, _ in self.reported]


def test_what_cleaning_means_is_said_when_a_query_begins() -> None:
    world = World()
    assert world.judge() == ""
    [(reason, message, warning)] = world.reported
    assert (reason, warning) == (Reason.SOURCE_FILES_CLEANED, True)
    assert "cleanSource 'delete': Spark deletes a file after its batch" in message


def test_it_is_not_said_again_at_each_restart() -> None:
    world = World()
    for batch in range(3):
        world.put(1, f"commits/{batch}")
    world.judge()
    assert world.reported == []


def test_it_is_said_at_each_upgrade_which_may_be_rolled_back() -> None:
    world = World(pin=Pin("up-1"))
    for batch in range(3):
        world.put(1, f"commits/{batch}")
    world.judge()
    assert world.reasons == [Reason.SOURCE_FILES_CLEANED]


def test_a_rehearsal_refuses_what_would_clean_up_in_spite_of_it() -> None:
    world = World(rehearsal=Rehearsal(3, 60))
    assert "a rehearsal must not remove the application's input" in world.judge()
    assert world.reported == []


def rolled_back(files: Iterable[str], **config: Any) -> World:
    """Return a lineage that began with the files up to ``b``, when the one before had read those up to ``e``."""
    world = World(files, lineage=2, epoch=3, **{"start_from": BACK, **config})
    for number, name in enumerate("abcde"):
        world.put(1, f"sources/0/{number}", entry((f"s3a://in/{name}", number)))
    world.put(1, "sources/1/0", 'v1\n{"orders":{"0":0}}')
    for number, name in enumerate("ab"):
        world.put(2, f"sources/0/{number}", entry((f"s3a://in/{name}", number)))
    world.put(2, "sources/1/0", 'v1\n{"orders":{"0":0}}')
    world.put(2, "commits/1")
    return world


def test_files_that_a_rollback_cannot_read_again_are_named() -> None:
    world = rolled_back({"s3a://in/e"})
    world.judge()
    (reason, message, warning), _ = world.reported
    assert (reason, warning) == (Reason.SOURCE_FILES_MISSING, True)
    assert (
        "2 files that the version read before its rollback are gone (cleanSource): s3a://in/c, s3a://in/d." in message
    )
    assert "if you have copies" in message


def test_where_archived_files_are_is_said() -> None:
    world = rolled_back({})
    world.judge(ARCHIVE)
    assert "Put them back from s3a://in/archive, and they are read" in world.reported[0][1]


def test_nothing_is_missed_where_every_file_is_there() -> None:
    world = rolled_back({"s3a://in/c", "s3a://in/d", "s3a://in/e"})
    world.judge()
    assert world.reasons == [Reason.SOURCE_FILES_CLEANED]


def test_files_are_looked_for_once() -> None:
    world = rolled_back({})
    world.put(2, "commits/2")
    world.judge()
    assert world.reported == []


def test_a_log_that_was_merged_says_what_is_behind_a_position() -> None:
    merged = entry(*((f"f{number}", number) for number in range(10)))
    logs = {"8": entry(("f8", 8)), "9.compact": merged, "10": entry(("f10", 10), ("g10", 10)), "_started": ""}
    assert read_after(logs, logs.__getitem__, 7) == ["f8", "f9", "f10", "g10"]
    assert read_after(logs, logs.__getitem__, 10) == []
