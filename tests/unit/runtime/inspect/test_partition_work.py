"""What a partition's rows come down to in the worker that reads them, and what the partitions' come to. Pure."""

import datetime
import itertools
import json
import pickle
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_spark.inspect.answers import (
    Read,
    as_text,
    head_of,
    longest_row,
    row_of,
    rows_answer,
    time_of,
    windows_answer,
)
from tidegate_spark.inspect.partition_work import ByWindow, Count, FirstRows, short

ALL = Read(2, 2)


def row(key: int) -> tuple[str, str]:
    return json.dumps({"k": key}), json.dumps({"value": {"n": key}})


def test_rows_after_the_last_that_is_wanted_are_not_read() -> None:
    seen: list[int] = []

    def endless() -> Iterator[tuple[str, str]]:
        for number in itertools.count():
            seen.append(number)
            yield row(number)

    assert list(FirstRows(3, 100)(endless())) == [(*row(n), 0) for n in range(3)]
    assert seen == [0, 1, 2]


def test_rows_are_counted_without_being_kept() -> None:
    assert list(Count()(iter([row(1)] * 5))) == [5]
    assert list(Count()(iter([]))) == [0]


def test_a_row_that_is_too_long_is_told_by_its_key_and_length() -> None:
    key, long = '{"k": 1}', json.dumps({"value": "x" * 100})
    assert short(key, long, 50) == (key, None, len(key) + len(long))
    assert short("k" * 300, None, 50) == (None, None, 300)
    assert row_of(short(key, long, 50)) == {"key": {"k": 1}, "tooLong": len(key) + len(long)}
    assert row_of(short(key, long, 500)) == {"key": {"k": 1}, "value": "x" * 100}
    assert row_of((None, None, 0)) == {}


@pytest.mark.parametrize("indent", [None, 2])
def test_an_answer_with_a_decimal_is_written_as_any_other(indent: int | None) -> None:
    def answer(number: object) -> dict[str, object]:
        return {
            "rows": [{"key": {"k": 'ä"\n'}, "n": number, "none": [], "of": {}, "a": [1.5, None, True]}],
            "empty": (),
        }

    written = json.dumps(answer(12.5), ensure_ascii=False, indent=indent)
    assert as_text(answer(12.5), indent) == written
    assert as_text(answer(Decimal("12345678901234567.890")), indent) == written.replace("12.5", "12345678901234567.890")


def test_text_that_looks_like_what_stands_for_a_decimal_stays_text() -> None:
    number = Decimal("12345678901234567.890")
    said = as_text({"rows": [{"key": "decimal0-0", "n": number, "decimal1-": "decimal1-0"}]})
    assert said == '{"rows": [{"key": "decimal0-0", "n": 12345678901234567.890, "decimal1-": "decimal1-0"}]}'


def test_the_work_reaches_a_worker_by_name() -> None:
    for work in (FirstRows(1, 2), Count(), ByWindow(1, 2, 3)):
        assert pickle.loads(pickle.dumps(work)) == work


def test_an_answer_has_as_many_rows_as_were_asked_for_and_tells_whether_there_are_more() -> None:
    texts = [(*row(n), 0) for n in range(4)]
    assert rows_answer(texts, 4, ALL) == {
        "rows": [{"key": {"k": n}, "value": {"n": n}} for n in range(4)],
        "complete": True,
        "partitions": {"read": 2, "of": 2},
    }
    assert rows_answer(texts, 3, ALL)["complete"] is False
    assert len(rows_answer(texts, 3, ALL)["rows"]) == 3
    assert rows_answer(texts, 4, Read(1, 2))["complete"] is False
    assert rows_answer(texts, 4, Read(1, 2, proves_all=True))["complete"] is True


def test_all_rows_together_are_bounded_whatever_is_asked() -> None:
    for number in (1, 100, 1000, 100_000):
        assert longest_row(number) * min(number, 1000) <= 4 * 1024 * 1024


def test_a_window_is_closed_once_the_watermark_has_passed_its_end() -> None:
    work = ByWindow(10, 1, 1000)
    found = list(work([(0, 60_000, *row(1)), (0, 60_000, *row(2)), (60_000, 120_000, *row(1))]))
    answer = windows_answer(found, 10, 1, 60_000, ALL)
    assert answer["windows"] == [
        {
            "start": "1970-01-01T00:00:00.000Z",
            "end": "1970-01-01T00:01:00.000Z",
            "closed": True,
            "count": 2,
            "rows": [{"key": {"k": 1}, "value": {"n": 1}}],
        },
        {
            "start": "1970-01-01T00:01:00.000Z",
            "end": "1970-01-01T00:02:00.000Z",
            "closed": False,
            "count": 1,
            "rows": [{"key": {"k": 1}, "value": {"n": 1}}],
        },
    ]
    assert (answer["complete"], answer["rowsInLaterWindows"]) == (True, 0)
    assert [each["closed"] for each in windows_answer(found, 10, 1, 0, ALL)["windows"]] == [None, None]


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)), max_size=200),
    st.integers(1, 5),
    st.integers(0, 3),
)
def test_the_earliest_windows_are_told_exactly_however_the_rows_lie(
    rows: list[tuple[int, int]], limit: int, contents: int
) -> None:
    """Each row is a window's number and a partition."""
    found = []
    for partition in range(4):
        of = [(10 * w, 10 * w + 10, *row(n)) for n, (w, p) in enumerate(rows) if p == partition]
        found += list(ByWindow(limit, contents, 1000)(of))
        assert len(found) <= 4 * (limit + 1)
    answer = windows_answer(found, limit, contents, 0, Read(4, 4))
    counts = Counter(w for w, _ in rows)
    earliest = sorted(counts)[:limit]
    assert [each["count"] for each in answer["windows"]] == [counts[w] for w in earliest]
    assert answer["rowsInLaterWindows"] == len(rows) - sum(counts[w] for w in earliest)
    assert answer["complete"] is (len(counts) <= limit)
    assert [len(each["rows"]) for each in answer["windows"]] == [min(contents, counts[w]) for w in earliest]


def test_what_a_record_from_a_far_future_did_to_windows_and_watermark_can_be_seen() -> None:
    far = 568_971_820_800_000  # an event time in microseconds that was read as milliseconds
    answer = windows_answer(
        ByWindow(10, 1, 1000)([(0, 60_000, *row(1)), (far, far + 60_000, *row(2))]), 10, 1, far, ALL
    )
    assert [each["start"] for each in answer["windows"]] == ["1970-01-01T00:00:00.000Z", "+20000-01-01T00:00:00.000Z"]
    assert head_of("main", 7, 1, far)["watermark"] == "+20000-01-01T00:00:00.000Z"


@given(st.datetimes())
def test_times_are_written_as_ever_and_those_beyond_four_digits_as_java_writes_them(at: datetime.datetime) -> None:
    milliseconds = (at - datetime.datetime(1970, 1, 1)) // datetime.timedelta(milliseconds=1)
    assert time_of(milliseconds) == at.isoformat(timespec="milliseconds") + "Z"
    assert time_of(9_223_372_036_854_775) == "+294247-01-10T04:00:54.775Z"
    assert time_of(-62_167_219_200_001) == "-0001-12-31T23:59:59.999Z"


def test_rows_without_a_window_are_in_none() -> None:
    rows = [(None, None, *row(1)), (0, 60_000, *row(2)), (0, None, *row(3))]
    assert list(ByWindow(10, 0, 1000)(rows)) == [((0, 60_000), 1, [])]
