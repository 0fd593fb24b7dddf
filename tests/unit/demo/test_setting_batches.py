"""The demo sees by batches that a decision's setting was in force."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from devcluster.demo.scenario import Setting, iso
from devcluster.demo.setting_batches import Ends, Found, batch_of, check

START = datetime(2010, 3, 10, tzinfo=UTC)
ENDS: Ends = {7: {0: 10, 1: 4}, 8: {0: 12, 1: 4}, 9: {0: 12, 1: 9}}


def at(hour: int) -> datetime:
    return START + timedelta(hours=hour)


def setting(hour: int, sensor: str = "seattle+0") -> Setting:
    return Setting(sensor, at(hour), 50.0, 1.0, 1.0)


def decision(hour: int) -> dict[str, Any]:
    return {"id": f"seattle+0@{iso(at(hour))}", "sensor": "seattle+0", "time": iso(at(hour))}


@pytest.mark.parametrize(
    ("position", "batch"),
    [((0, 11), 8), ((0, 10), 8), ((1, 4), 9), ((1, 8), 9)],
    ids=["last of a batch", "first of a batch", "first of another partition", "last of another partition"],
)
def test_a_record_is_in_the_first_batch_that_ends_behind_it(position: tuple[int, int], batch: int) -> None:
    assert batch_of(position, ENDS) == batch


def test_of_a_record_before_what_is_known_and_of_one_behind_it_no_batch_is_told() -> None:
    assert batch_of((0, 9), ENDS) is None
    assert batch_of((0, 12), ENDS) is None
    assert batch_of((0, 0), {}) is None


def test_before_the_first_batch_of_all_there_is_none() -> None:
    assert batch_of((0, 2), {0: {0: 3}}) == 0
    assert batch_of((0, 2), {0: {}, 1: {0: 3}}) == 1


SENT = {"a": (setting(0), setting(0, "seattle+1")), "b": (setting(2),)}
POSITIONS = {("seattle+0", at(hour)): (0, 9 + hour) for hour in range(4)}
"""Those of hours 1 and 2 are in batch 8."""


def test_a_decision_is_held_against_the_message_with_the_newest_setting_that_is_not_newer_than_its_reading() -> None:
    consumed = [decision(1), decision(2), decision(1)]
    assert check(consumed, SENT, {"a": {"batch": 7}, "b": {"batch": 8}}, POSITIONS, ENDS) == Found(in_force=2)
    late = check(consumed, SENT, {"a": {"batch": 7}, "b": {"batch": 9}}, POSITIONS, ENDS)
    assert late == Found(in_force=1, too_late=(decision(2)["id"],))


def test_a_decision_without_a_setting_is_found() -> None:
    found = check([decision(1)], {"b": SENT["b"]}, {"b": {"batch": 1}}, POSITIONS, ENDS)
    assert found == Found(too_late=(decision(1)["id"],))


def test_decisions_of_which_the_checkpoint_tells_nothing_any_more_are_counted() -> None:
    assert check([decision(0)], SENT, {"a": {"batch": 2}, "b": {"batch": 3}}, POSITIONS, ENDS) == Found(unknown=1)
