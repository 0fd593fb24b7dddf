"""Which resources are created now, if the API server did not let some be created before. Pure."""

import pytest

from tidegate.cache.process_state import NotCreated
from tidegate.control.rules.creations import created_now
from tidegate_testing.observations import NOW


def failed(seconds_ago: float, attempts: int = 1) -> NotCreated:
    return NotCreated("uid-a", "exceeded quota", NOW - seconds_ago, is_refused=True, attempts=attempts)


def creations(not_created: dict[str, NotCreated], wanted: str, now: float) -> tuple[str, float | None]:
    names, left = created_now(not_created, wanted, now)
    return "".join(sorted(names)), left


def test_what_was_not_tried_yet_is_created_whatever_waits() -> None:
    assert creations({}, "ab", NOW) == ("ab", None)
    assert creations({"a": failed(10)}, "ab", NOW) == ("b", 20)


def test_of_what_waits_the_one_that_waits_longest_is_tried_in_each_pause() -> None:
    waiting = {"a": failed(40), "b": failed(50)}
    assert creations(waiting, "ab", NOW) == ("b", None)
    assert creations({**waiting, "b": failed(0, attempts=2)}, "ab", NOW) == ("", 30)
    assert creations({**waiting, "b": failed(30, attempts=2)}, "ab", NOW) == ("a", None)


def test_once_one_is_created_the_next_is_tried_at_once() -> None:
    assert creations({"a": failed(40, attempts=2)}, "a", NOW) == ("a", None)


def test_what_fails_for_the_first_time_keeps_nothing_waiting_that_waits_longer() -> None:
    assert creations({"a": failed(40), "b": failed(1)}, "ab", NOW) == ("a", None)


def test_what_is_not_wanted_any_more_keeps_nothing_waiting() -> None:
    assert creations({"c": failed(1, attempts=2), "a": failed(40)}, "a", NOW) == ("a", None)


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_clock_that_was_set_back_makes_nothing_wait(attempts: int) -> None:
    assert creations({"a": failed(-3600, attempts)}, "a", NOW) == ("a", None)
