"""Which messages are written together, and under which name: the same until they are written, and in their order."""

from typing import Any

import pytest

from tidegate_spark.control.channels.transports.inbox import LARGEST_BATCH
from tidegate_spark.control_writer import Pace
from tidegate_spark.control_writer.outbox import Batch, Outbox

WRITER = "0" * 16


def outbox(number: int = 0, size: int = 1, **pace: Any) -> Outbox:
    made = Outbox(WRITER, Pace(**pace))
    for each in range(number):
        made.add(str(each), b"x" * size, float(each))
    return made


def batch(made: Outbox, now: float = 100.0) -> Batch:
    found = made.batch(now)
    assert found is not None
    return found


def test_nothing_is_written_of_nothing() -> None:
    assert (outbox().batch(0.0), outbox().since, outbox().ids) == (None, None, ())


def test_a_batch_is_the_same_until_it_is_written_whatever_comes_meanwhile() -> None:
    made = outbox(2)
    first = batch(made)
    made.add("2", b"y", 5.0)
    assert batch(made, 200.0) == first
    made.done()
    second = batch(made)
    assert [(each.name.first, each.name.count, each.body) for each in (first, second)] == [
        (0, 2, b"[x,\nx]"),
        (2, 1, b"[y]"),
    ]
    assert (made.written, made.following) == (2, 3)


def test_names_sort_in_the_order_of_messages_though_the_clock_is_set_back() -> None:
    made = outbox(3, most_in_batch=1)
    names = []
    for now in (2000.0, 1000.0, 3000.0):
        names.append(str(batch(made, now).name))
        made.done()
    assert names == sorted(names)


def test_a_batch_has_an_end_by_number_and_by_bytes() -> None:
    assert batch(outbox(7, most_in_batch=3)).name.count == 3
    large = LARGEST_BATCH // 4
    assert batch(outbox(7, size=large + 1)).name.count == 3
    assert batch(outbox(2, size=2 * LARGEST_BATCH)).name.count == 1


def test_a_message_waits_for_others_and_not_for_long() -> None:
    made = outbox(1, linger_seconds=2.0, most_in_batch=3)
    assert [made.linger(now) for now in (0.0, 1.5, 9.0)] == [2.0, 0.5, 0.0]
    made.add("1", b"", 0.0)
    made.add("2", b"", 0.0)
    assert made.linger(0.0) == 0.0
    made = outbox(1, linger_seconds=2.0)
    batch(made)
    assert made.linger(0.0) == 0.0, "it was tried before"


def test_what_waits_is_bounded_by_number_and_by_bytes() -> None:
    made = outbox(2, most_waiting=3, most_waiting_bytes=10)
    assert (made.has_room(8), made.has_room(9)) == (True, False)
    made.add("2", b"", 0.0)
    assert not made.has_room(1)
    batch(made)
    assert not made.has_room(1), "it may have to be written again"
    made.done()
    assert made.has_room(100)


@pytest.mark.parametrize("wrong", [{"most_in_batch": 0}, {"most_in_batch": 1001}, {"linger_seconds": -1}])
def test_a_pace_that_cannot_be_kept_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        outbox(**wrong)
