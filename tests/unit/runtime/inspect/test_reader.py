"""How a look is made: which partitions are read, in what turns, and when it begins again. A pretended Spark."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError

from tidegate_spark.exports.tables import Table
from tidegate_spark.inspect import checkpoint_logs, reader, state_frames
from tidegate_spark.inspect.checkpoint_logs import At
from tidegate_spark.inspect.errors import BadQuestionError, NotYetError, TooSlowError, UnavailableError, UnreadableError
from tidegate_spark.inspect.questions import Operators, Rows, Windows
from tidegate_spark.inspect.reader import CheckpointReader
from tidegate_spark.snapshots.checkpoint.checkpoint import MissingFileError
from tidegate_testing.waiting import wait_for

Texts = tuple[str | None, str | None]
TABLE = Table(0, "stateStoreSave", "default", "rows")
SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "key", "type": {"type": "struct", "fields": [{"name": "k", "type": "long"}]}},
        {"name": "value", "type": {"type": "struct", "fields": [{"name": "n", "type": "long"}]}},
    ],
}


@dataclass
class Context:
    """What a look uses of a SparkContext."""

    cores: int = 4
    jobs: list[list[int]] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)
    groups: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    before_job: Callable[[int], None] = lambda number: None

    @property
    def defaultParallelism(self) -> int:  # noqa: N802 - Spark's name
        return self.cores

    def setLocalProperty(self, key: str, value: str) -> None:  # noqa: N802 - Spark's name
        self.properties[key] = value

    def setJobGroup(self, group: str, description: str, interruptOnCancel: bool) -> None:  # noqa: N802, N803
        assert interruptOnCancel
        self.groups.append(group)

    def cancelJobGroup(self, group: str) -> None:  # noqa: N802 - Spark's name
        self.cancelled.append(group)

    def runJob(self, rows: Any, work: Any, partitions: list[int]) -> list[Any]:  # noqa: N802 - Spark's name
        self.before_job(len(self.jobs))
        self.jobs.append(partitions)
        return [each for number in partitions for each in work(iter(rows.partitions[number]))]


@dataclass
class Pretended:
    """A Spark with one query whose state is in partitions, and a clock."""

    partitions: list[list[Texts]]
    context: Context = field(default_factory=Context)
    batch: int | None = 7
    now: float = 0.0
    likely: int = 0
    looked: list[int | None] = field(default_factory=list)

    def rows(self) -> Any:
        pieces = SimpleNamespace(partitions=self.partitions, getNumPartitions=lambda: len(self.partitions))
        return SimpleNamespace(rdd=pieces, schema=SimpleNamespace(jsonValue=lambda: SCHEMA))

    def read_batch(self, files: object, query: str) -> At:
        self.looked.append(self.batch)
        if self.batch is None:
            raise NotYetError("nothing yet")
        return At(self.batch, 1000, 0, {}, {}, 2)

    def answer(self, question: Operators | Rows | Windows) -> dict[str, Any]:
        spark: Any = SimpleNamespace(sparkContext=self.context)
        return CheckpointReader(spark, lambda: {"main": "s3a://b/main"}, lambda: self.now).answer(question)


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Pretended:
    made = Pretended([[(f'{{"k":{10 * p + n}}}', f'{{"value":{{"n":{n}}}}}') for n in range(3)] for p in range(8)])
    monkeypatch.setattr(reader, "Files", lambda spark, root: root)
    monkeypatch.setattr(checkpoint_logs, "read_batch", made.read_batch)
    monkeypatch.setattr(checkpoint_logs, "newest_batch", lambda files: made.batch)
    monkeypatch.setattr(state_frames, "Sessions", lambda spark: SimpleNamespace(of=lambda at: spark))
    monkeypatch.setattr(reader, "Sessions", lambda spark: SimpleNamespace(of=lambda at: spark))
    monkeypatch.setattr(state_frames, "tables_at", lambda session, files, checkpoint: [TABLE])
    monkeypatch.setattr(state_frames, "frame_of", lambda session, checkpoint, at, table: made.rows())
    monkeypatch.setattr(state_frames, "fulfilling", lambda rows, conditions: rows)
    monkeypatch.setattr(state_frames, "as_texts", lambda rows, *before: rows)
    monkeypatch.setattr(state_frames, "as_nothing", lambda rows: rows)
    monkeypatch.setattr(state_frames, "likely_partition", lambda session, schema, conditions, partitions: made.likely)
    return made


def test_a_look_reads_a_few_partitions_at_a_time_and_stops_when_it_has_enough(spark: Pretended) -> None:
    spark.context.cores = 8
    answer = spark.answer(Rows("main", 0, limit=7))
    assert spark.context.jobs == [[0, 1], [2, 3]]
    assert (len(answer["rows"]), answer["complete"], answer["partitions"]) == (7, False, {"read": 4, "of": 8})
    assert (answer["batch"], answer["operatorName"], answer["name"]) == (7, "stateStoreSave", "default")


@pytest.mark.parametrize(("cores", "at_once"), [(1, 1), (3, 1), (4, 1), (8, 2), (64, 8)])
def test_no_look_uses_more_than_its_share_of_the_cores(spark: Pretended, cores: int, at_once: int) -> None:
    spark.context.cores = cores
    answer = spark.answer(Rows("main", 0, count=True))
    assert {len(job) for job in spark.context.jobs} == {at_once}
    assert (answer["count"], answer["complete"]) == (24, True)


def test_its_jobs_have_a_group_and_a_pool_of_their_own(spark: Pretended) -> None:
    spark.answer(Rows("main", 0))
    assert spark.context.properties == {"spark.scheduler.pool": "tidegate-inside"}
    assert spark.context.groups == ["tidegate-inside-1"]
    assert spark.context.cancelled == []


def test_a_key_is_looked_for_where_it_is_likely_to_be_and_no_further_if_it_is_there(spark: Pretended) -> None:
    spark.likely = 5
    answer = spark.answer(Rows("main", 0, key="51"))
    assert spark.context.jobs == [[5]]
    assert (answer["complete"], answer["partitions"]) == (True, {"read": 1, "of": 8})


def test_a_key_that_is_not_there_is_looked_for_everywhere(spark: Pretended) -> None:
    spark.partitions = [[] for _ in range(4)]
    spark.likely = 2
    answer = spark.answer(Rows("main", 0, key="51"))
    assert spark.context.jobs == [[2], [0], [1], [3]]
    assert (answer["rows"], answer["complete"]) == ([], True)


def test_a_look_whose_time_is_over_tells_what_it_has(spark: Pretended) -> None:
    def slow(number: int) -> None:
        spark.now += 8

    spark.context.before_job = slow
    answer = spark.answer(Rows("main", 0, seconds=20))
    assert (len(answer["rows"]), answer["complete"], answer["partitions"]) == (9, False, {"read": 3, "of": 8})


def test_jobs_that_are_cancelled_because_the_time_is_over_leave_what_was_read_before(spark: Pretended) -> None:
    def cancelled(number: int) -> None:
        if number == 2:
            spark.now = 99
            raise Py4JError("cancelled")

    spark.context.before_job = cancelled
    answer = spark.answer(Rows("main", 0))
    assert (answer["complete"], answer["partitions"]) == (False, {"read": 2, "of": 8})


TIME, KEY = "--seconds of the command, seconds= of the request; at most 60", "one key (--key, key=)"


@pytest.mark.parametrize(
    ("question", "helps", "helps_not"),
    [
        (Rows("main", 0), [TIME, KEY], ["no long batch"]),
        (Rows("main", 0, key="51"), [TIME], [KEY]),
        (Rows("main", 0, key="51", seconds=60), ["60 s, the most there is: ask again"], [TIME, KEY]),
        (Rows("main", 0, seconds=60), [KEY], [TIME]),
    ],
)
def test_a_look_that_read_nothing_in_its_time_says_what_helps_that_was_not_asked_for(
    spark: Pretended, question: Rows, helps: list[str], helps_not: list[str]
) -> None:
    def cancelled(number: int) -> None:
        spark.now = 99
        raise Py4JError("cancelled")

    spark.context.before_job = cancelled
    with pytest.raises(TooSlowError) as slow:
        spark.answer(question)
    said = str(slow.value)
    assert f"nothing was read within {question.seconds} s" in said
    assert [message for message in helps if message not in said] == [], said
    assert [message for message in helps_not if message in said] == [], said


def test_a_look_that_had_no_time_for_a_single_job_says_the_same(
    spark: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow_storage(*_: object) -> Any:
        spark.now = 99
        return spark.rows()

    monkeypatch.setattr(state_frames, "frame_of", slow_storage)
    with pytest.raises(TooSlowError) as slow:
        spark.answer(Rows("main", 0))
    assert TIME in str(slow.value)
    assert spark.context.jobs == []


def test_a_key_is_not_looked_for_when_the_time_is_over_before_that(
    spark: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*_: object) -> int:
        spark.now = 99
        return 5

    monkeypatch.setattr(state_frames, "likely_partition", slow)
    with pytest.raises(TooSlowError):
        spark.answer(Rows("main", 0, key="51"))
    assert spark.context.jobs == []


def test_a_job_that_begins_after_the_time_is_over_is_cancelled_too(
    spark: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would keep every other inspection waiting for as long as no core is free."""
    monkeypatch.setattr(state_frames, "CANCELLED_AGAIN_SECONDS", 0.02)

    def slow_storage(*_: object) -> Any:
        wait_for("the end of its time", lambda: bool(spark.context.cancelled), 30, 0.01)
        return spark.rows()

    def wait_for_a_core(number: int) -> None:
        before = len(spark.context.cancelled)
        wait_for("its cancellation", lambda: len(spark.context.cancelled) > before, 2, 0.01)
        spark.now = 99
        raise Py4JError("cancelled")

    monkeypatch.setattr(state_frames, "frame_of", slow_storage)
    spark.context.before_job = wait_for_a_core
    with pytest.raises(TooSlowError):
        spark.answer(Rows("main", 0, seconds=1))


def test_a_batch_that_is_cleaned_up_meanwhile_is_left_for_the_newest_one(spark: Pretended) -> None:
    def gone(number: int) -> None:
        if spark.batch == 7:
            spark.batch = 9
            raise Py4JError("no such file")

    spark.context.before_job = gone
    assert spark.answer(Rows("main", 0))["batch"] == 9
    assert spark.looked == [7, 9]


def test_batches_that_go_faster_than_they_are_read_are_told_with_the_setting(spark: Pretended) -> None:
    def gone(number: int) -> None:
        assert spark.batch is not None
        spark.batch += 3
        raise MissingFileError("state/0/0/1.zip", "it was there")

    spark.context.before_job = gone
    with pytest.raises(UnavailableError, match=r"batch 13, the newest is 16.*spec\.state\.minBatchesToRetain"):
        spark.answer(Rows("main", 0))
    assert spark.looked == [7, 10, 13]


def test_state_that_can_not_be_read_is_told_in_sparks_words_at_once(spark: Pretended) -> None:
    def broken(number: int) -> None:
        raise Py4JError("An error occurred\nCaused by: java.io.IOException: Corruption: bad block")

    spark.context.before_job = broken
    with pytest.raises(UnreadableError, match=r"Corruption: bad block$"):
        spark.answer(Rows("main", 0))
    assert spark.looked == [7]


def test_a_query_that_has_committed_nothing_is_not_looked_at(spark: Pretended) -> None:
    spark.batch = None
    with pytest.raises(NotYetError):
        spark.answer(Operators("main"))


def test_a_filter_is_checked_before_any_job_is_run(spark: Pretended) -> None:
    with pytest.raises(BadQuestionError, match="filter: value has no 'x'; it has n"):
        spark.answer(Rows("main", 0, filter="value.x = 1"))
    assert spark.context.jobs == []
