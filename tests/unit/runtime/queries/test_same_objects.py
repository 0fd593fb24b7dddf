"""What a script makes again when it starts a failed query again is the same; what writes elsewhere is not."""

import dataclasses
import functools
import gc
import logging
import sqlite3
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

from tidegate_spark.queries.same_objects import Held
from tidegate_spark.queries.same_query import Plan


class Writing:
    """As scripts have it: its method, or it itself, is what a query calls."""

    def __init__(self, place: str, **held: object) -> None:
        self.place, self.lock, self.log, self.done = place, threading.Lock(), logging.getLogger("writing"), 0
        self.__dict__.update(held)

    def write(self, rows: object, batch_id: int) -> None:
        self.done += 1

    def other(self, rows: object, batch_id: int) -> None: ...


def write(rows: object, batch_id: int, place: str) -> None: ...


def counting(count: int) -> Callable[[], tuple[Callable[[], int], Callable[[], int]]]:
    def start() -> Callable[[], int]:
        def batch() -> int:
            nonlocal count
            count += 1
            return count

        return batch

    return lambda: (start(), start())


def local(place: str) -> object:
    class Local:
        def write(self, rows: object, batch_id: int) -> str:
            return place

    return Local()


@dataclasses.dataclass
class Table:
    place: str


ONE = Writing("a")
SELF_HOLDING = [Writing("a"), Writing("a")]
for each in SELF_HOLDING:
    each.__dict__["me"] = each


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ONE.write, ONE.write),
        (Writing("a").write, Writing("a").write),
        (Writing("a"), Writing("a")),
        (functools.partial(write, place="a"), functools.partial(write, place="a")),
        (functools.partial(Writing("a").write, batch_id=1), functools.partial(Writing("a").write, batch_id=1)),
        (Writing("a", settings=Table("b")), Writing("a", settings=Table("b"))),
        (Writing("a", keys={"b": [1, Path("c")]}), Writing("a", keys={"b": [1, Path("c")]})),
        (local("a"), local("a")),
        counting(1)(),
        (SELF_HOLDING[0].write, SELF_HOLDING[1].write),
        ([].append, [].append),
        (None, None),
    ],
)
def test_what_a_script_makes_again_at_each_try_is_the_same_query(one: object, other: object) -> None:
    assert Held(one).is_same(Held(other))


def test_what_an_object_holds_is_compared_as_it_was_when_its_query_started() -> None:
    first, again, of_another = Writing("a"), Writing("a"), Writing("a")
    before = Held(first.write)
    first.write(None, 0)
    first.place = "closed"
    assert before.is_same(Held(first.write))
    assert before.is_same(Held(again.write))
    of_another.place = "b"
    assert not before.is_same(Held(of_another.write))


class Odd:
    def __eq__(self, other: object) -> bool:
        raise TypeError

    def __hash__(self) -> int:
        return 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Writing("a").write, Writing("b").write),
        (Writing("a").write, Writing("a").other),
        (Writing("a"), Table("a")),
        (functools.partial(write, place="a"), functools.partial(write, place="b")),
        (functools.partial(write, place="a"), functools.partial(write, rows="a")),
        (Writing("a", settings=Table("b")), Writing("a", settings=Table("c"))),
        (Writing("a", keys={"b": [Path("c")]}), Writing("a", keys={"b": [Path("d")]})),
        (Writing("a", keys=range(9), more=1), Writing("a", keys=range(9), more=True)),
        (Writing("a", many=list(range(5000))), Writing("a", many=list(range(5000)))),
        (local("a"), local("b")),
        (Odd(), Odd()),
        (sqlite3.connect(":memory:"), sqlite3.connect(":memory:")),  # of what, nobody sees
        (None, write),
    ],
)
def test_what_may_be_another_query_is_not_the_same(one: object, other: object) -> None:
    assert not Held(one).is_same(Held(other))
    assert "'a'" not in repr(Plan("rate", one))  # it may be a password


def test_nothing_that_a_script_needs_no_more_is_kept_for_its_query() -> None:
    held = Table("a")
    gone = weakref.ref(held)
    before = Held(Writing("a", settings=held))
    del held
    gc.collect()
    assert gone() is None
    assert before.is_same(Held(Writing("a", settings=Table("a"))))


def _writer_to(table: str) -> object:
    class Sink:
        def process(self, row: object) -> None:
            raise NotImplementedError(row)

    setattr(Sink, "table", table)  # noqa: B010 - as "table = target" in a class's body
    return Sink()


def test_writers_of_a_class_that_is_made_for_each_target_differ_by_what_the_class_has() -> None:
    """Two queries in one line of a loop: the second is not to continue in the first one's checkpoint."""
    assert Held(_writer_to("a")).is_same(Held(_writer_to("a")))
    assert not Held(_writer_to("a")).is_same(Held(_writer_to("b")))
