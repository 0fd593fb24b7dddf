"""The position of a batch is where Spark's offset log says it is."""

from typing import Any

import pytest

from tidegate_spark.contract.object_paths import EMPTY_START
from tidegate_spark.control.worker.source import ControlReader, Records
from tidegate_spark.control_log.offsets import Positions, joins_late, position_in, position_of_progress
from tidegate_testing.control_log import BUCKET, PREFIX, repository_in
from tidegate_testing.memory_store import Buckets

HEAD = 'v1\n{"batchWatermarkMs":0,"conf":{}}\n'


@pytest.mark.parametrize(
    ("text", "position"),
    [
        (HEAD + '{"orders":{"0":7}}\n{"tidegate-control": 12}', 12),
        (HEAD + '{"tidegate-control":3}\n{"tidegate-control":5}', 5),
        (HEAD + '{"orders":{"0":7}}', None),
        (HEAD + "-", None),
        ('v2\n{}\ncontrol:{"tidegate-control": 4}', 4),
    ],
)
def test_the_position_is_read_from_the_offset_log(text: str, position: int | None) -> None:
    assert position_in(text) == position


def test_a_query_without_the_source_joins_late_unless_its_sources_have_names() -> None:
    assert joins_late(HEAD + '{"orders":{"0":7}}')
    assert not joins_late(HEAD + '{"tidegate-control": 12}')
    assert not joins_late('v2\n{}\norders:{"0":7}')


@pytest.mark.parametrize(
    ("sources", "position"),
    [([{"endOffset": {"tidegate-control": 4}}, {"endOffset": 7}], 4), ([{"endOffset": None}], -1), ([], -1)],
)
def test_the_position_of_a_committed_batch_is_in_sparks_report(sources: list[Any], position: int) -> None:
    assert position_of_progress(sources) == position


def test_the_batch_of_a_message_is_the_first_one_behind_it() -> None:
    buckets = Buckets()
    for batch, position in enumerate([1, 1, 4, 4, 9]):
        text = HEAD + f'{{"tidegate-control": {position}}}'
        buckets.write(BUCKET, f"{PREFIX}/lineages/2/main/offsets/{batch}", text.encode())
        if batch < 4:
            buckets.write(BUCKET, f"{PREFIX}/lineages/2/main/commits/{batch}", b"v1\n{}")
    positions, repository = Positions(2), repository_in(buckets)
    assert [positions.batch_of(repository, "main", sequence) for sequence in (1, 2, 4, 5)] == [0, 2, 2, None]
    assert positions.newest(repository, "main") == 4
    assert positions.oldest(repository) == 1
    assert positions.newest(repository, "other") is None


def test_the_oldest_position_is_found_though_spark_removes_the_oldest_batches_after_they_were_listed() -> None:
    """Nothing of the log would be removed before the next base, which may be in an hour."""
    buckets = Buckets()

    def write(batch: int, position: int) -> None:
        text = HEAD + f'{{"tidegate-control": {position}}}'
        buckets.write(BUCKET, f"{PREFIX}/lineages/2/main/offsets/{batch}", text.encode())

    def remove(upto: int) -> None:
        for batch in range(upto):
            buckets.remove(BUCKET, f"{PREFIX}/lineages/2/main/offsets/{batch}")

    for batch in range(4):
        write(batch, 10 * batch)
    assert Positions(2).oldest(repository_in(buckets, lambda call: remove(2) if call.verb == "get" else None)) == 20
    with pytest.raises(LookupError):
        Positions(2).oldest(repository_in(buckets, lambda call: remove(4) if call.verb == "get" else None))


def test_a_query_that_the_program_does_not_start_counts_until_others_are_far_ahead_of_it() -> None:
    buckets = Buckets()

    def write(query: str, position: int) -> None:
        text = HEAD + f'{{"tidegate-control": {position}}}'
        buckets.write(BUCKET, f"{PREFIX}/lineages/2/{query}/offsets/0", text.encode())

    write("renamed", 3)
    # The store's clock goes on by a second with each write.
    for _ in range(100):
        buckets.write(BUCKET, f"{PREFIX}/elsewhere", b"")
    positions, repository = Positions(2), repository_in(buckets)
    assert positions.oldest(repository, away=60.0) == 3  # for this long nothing ran at all
    write("main", 90)
    assert positions.oldest(repository, away=60.0) == 90
    assert positions.oldest(repository, away=200.0) == 3
    assert positions.oldest(repository) == 3
    assert positions.oldest(repository, here={"renamed"}, away=60.0) == 3


def test_nothing_continues_from_an_empty_start_but_the_query_that_was_started_so() -> None:
    buckets = Buckets()
    for directory, position in ((f"table{EMPTY_START}1", 3), (f"table{EMPTY_START}2", 7), ("main", 9)):
        text = HEAD + f'{{"tidegate-control": {position}}}'
        buckets.write(BUCKET, f"{PREFIX}/lineages/2/{directory}/offsets/0", text.encode())
    positions, repository = Positions(2), repository_in(buckets)
    assert positions.oldest(repository, here={f"table{EMPTY_START}2", "main"}) == 7
    assert positions.oldest(repository, here={"main"}) == 9


def test_what_was_listed_tells_of_many_messages_and_is_listed_again_when_it_is_cleaned_up() -> None:
    buckets = Buckets()
    calls: list[str] = []

    def write(batch: int) -> None:
        text = HEAD + f'{{"tidegate-control": {10 * batch}}}'
        for log, content in (("offsets", text.encode()), ("commits", b"v1\n{}")):
            buckets.write(BUCKET, f"{PREFIX}/lineages/1/main/{log}/{batch}", content)

    for batch in range(8):
        write(batch)
    positions, repository = Positions(1), repository_in(buckets, lambda call: calls.append(call.verb))
    assert [positions.batch_of(repository, "main", sequence) for sequence in range(1, 70)] == [
        (sequence + 9) // 10 for sequence in range(1, 70)
    ]
    assert calls.count("list") <= 4
    write(8)
    for batch in range(7):
        repository.store.delete([f"{PREFIX}/lineages/1/main/{log}/{batch}" for log in ("offsets", "commits")])
    assert Positions(1).batch_of(repository, "main", 75) == positions.batch_of(repository, "main", 75) == 8


class Reader(ControlReader):
    """A source whose driver is a list."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        super().__init__()
        self.messages = messages

    def _ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if path == "/position":
            return {"position": len(self.messages)}
        return {"messages": self.messages[body["after"] : body["upto"]]}


def test_a_new_query_has_a_position_from_its_first_batch_and_no_records_of_before() -> None:
    message = {"sequence": 1, "id": "x", "type": "t", "time": 0.0, "source": "s", "payload": "1"}
    reader = Reader([message])
    start = reader.initialOffset()
    end = reader.latestOffset(start, None)
    assert end == {"tidegate-control": 1}
    assert reader.partitions(start, end) == []
    reader.messages.append({**message, "sequence": 2})
    later = reader.latestOffset()
    (partition,) = reader.partitions(end, later)
    assert isinstance(partition, Records)
    assert [row[0] for row in reader.read(partition)] == [2]


def test_a_query_that_is_to_end_takes_nothing_in_that_comes_later() -> None:
    reader = Reader([])
    reader.prepareForTriggerAvailableNow()
    reader.messages.append({})
    assert reader.latestOffset({"tidegate-control": -1}, None) == {"tidegate-control": 0}
