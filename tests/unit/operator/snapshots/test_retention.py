"""Which scheduled snapshots go, and which never do. Pure."""

import dataclasses
import datetime
from typing import Any

import msgspec
import pytest

from tidegate.api.snapshot_identity import snapshot_id
from tidegate.api.stream_snapshot import SnapshotPhase, StreamSnapshot
from tidegate.api.streaming_app import Condition, StreamingApp
from tidegate.engine.rules.actions import PublishEvent
from tidegate.snapshots.actions import DeleteSnapshot, StampRetention
from tidegate.snapshots.observation import SnapshotObservation
from tidegate.snapshots.rules.plan import decide_snapshot
from tidegate_testing.observations import NOW, app_with, launched
from tidegate_testing.snapshot_observations import APP, TIME, later_than, ready_snapshot, snapshot
from tidegate_testing.snapshot_observations import observe as observe_one

DAY = 86400.0
KEEP_TWO = '{"maxCount":2}'
KEEP_ONE, KEEP_A_DAY = '{"maxCount":1}', '{"maxAgeSeconds":86400}'
KEEP_A_WEEK = '{"maxAgeSeconds":604800}'


def made(days_ago: float, keep: str | None = KEEP_TWO, *, failed: bool = False) -> StreamSnapshot:
    """Return one that was made so many days ago, by the schedule unless it has no ``keep``."""
    found = ready_snapshot()
    metadata = msgspec.structs.replace(
        found.metadata,
        name=f"orders-{days_ago:g}",
        uid=f"uid-{days_ago:g}",
        creation_timestamp=datetime.datetime.fromtimestamp(NOW - days_ago * DAY, datetime.UTC),
        labels={"tidegate.dev/scheduled": "true"} if keep is not None else {},
        annotations={"tidegate.dev/retention": keep or "{}", "tidegate.dev/app-uid": "u-1"},
    )
    status = msgspec.structs.replace(found.status, snapshot_id=snapshot_id(metadata))
    if failed:
        status = msgspec.structs.replace(status, phase=SnapshotPhase.FAILED, ready_time=None)
    return msgspec.structs.replace(found, metadata=metadata, status=status)


def among(of: StreamSnapshot, *others: StreamSnapshot, **around: Any) -> SnapshotObservation:
    return observe_one(of, later=later_than(of, others), **around)


def goes(o: SnapshotObservation, now: float = NOW) -> bool:
    deletes = [action for action in decide_snapshot(o, now).actions if isinstance(action, DeleteSnapshot)]
    assert all(action.snapshot == o.snapshot for action in deletes)
    return bool(deletes)


def keeping(text: str, uid: str = "u-1", **change: Any) -> StreamingApp:
    return launched(
        app_with({"snapshots": {"schedule": "0 * * * *", "retention": msgspec.json.decode(text)}, **change}, uid=uid)
    )


def test_so_many_stay_whether_the_application_is_there_or_not() -> None:
    one, two, three = made(1), made(2), made(3)
    for app in (None, keeping(KEEP_TWO)):
        others = {0: (two, three), 1: (one, three), 2: (one, two)}
        said = [goes(among(s, *others[n], app=app)) for n, s in enumerate((one, two, three))]
        assert said == [False, False, True]


def test_what_goes_is_told() -> None:
    (events,) = [
        a for a in decide_snapshot(among(made(3), made(1), made(2)), NOW).actions if isinstance(a, PublishEvent)
    ]
    assert (events.reason, events.warning) == ("SnapshotExpired", False)
    assert "2 later ones are retained" in events.message


def test_what_people_asked_for_neither_goes_nor_counts() -> None:
    assert not goes(among(made(9, None), made(1), made(2), made(3)))
    assert not goes(among(made(3), made(1, None), made(2)))


def test_who_takes_the_label_off_keeps_the_snapshot() -> None:
    kept = made(9)
    kept = msgspec.structs.replace(kept, metadata=msgspec.structs.replace(kept.metadata, labels={}))
    assert not goes(among(kept, made(1), made(2), made(3)))


def test_what_is_too_old_goes_when_its_time_has_come() -> None:
    old, newer = made(6, KEEP_A_WEEK), made(1, KEEP_A_WEEK)
    plan = decide_snapshot(among(old, newer), NOW)
    assert (goes(among(old, newer)), plan.wake_after) == (False, DAY)
    assert goes(among(old, newer), NOW + DAY)


def test_the_newest_stays_however_old_it_is() -> None:
    assert not goes(among(made(900, KEEP_A_WEEK), made(901, KEEP_A_WEEK)))
    assert not goes(among(made(900, KEEP_A_WEEK), made(1, KEEP_A_WEEK, failed=True)))
    assert goes(among(made(900, KEEP_A_WEEK), made(899, None)))


def test_nothing_is_too_old_by_a_clock_that_the_api_servers_contradicts() -> None:
    o = among(made(9, KEEP_A_WEEK), made(1, KEEP_A_WEEK), clock_skew=400 * DAY)
    assert (goes(o), decide_snapshot(o, NOW).wake_after) == (False, 600.0)
    assert goes(dataclasses.replace(o, clock_skew=-3.0))
    too_many = among(made(3), made(1), made(2), clock_skew=400 * DAY)
    assert goes(too_many), "numbers need no clock"


def test_what_an_application_starts_from_stays_also_when_it_has_begun() -> None:
    assert not goes(among(made(3), made(1), made(2), begun_by=("variant",)))


def test_what_failed_goes_when_a_later_one_has_ended() -> None:
    failed = made(3, failed=True)
    assert not goes(among(failed, made(9), made(2, None)))
    assert goes(among(failed, made(1)))
    assert goes(among(failed, made(1, failed=True)))


@pytest.mark.parametrize("keep", ["{}", "no JSON", '{"maxAgeSeconds":"soon"}'])
def test_what_nobody_limits_or_nobody_can_read_stays(keep: str) -> None:
    assert not goes(among(made(900, keep), made(1, keep), made(2, keep)))


def test_one_on_its_way_is_not_judged() -> None:
    coming = made(9)
    coming = msgspec.structs.replace(coming, status=snapshot().status)
    assert not goes(among(coming, made(1), made(2), made(3)))


# --- what is noted on them ---


def test_what_the_application_says_by_now_is_noted_before_anything_goes() -> None:
    o = among(made(3), made(1), made(2), app=keeping('{"maxCount":5}'))
    plan = decide_snapshot(o, NOW)
    assert [type(a).__name__ for a in plan.actions if not isinstance(a, PublishEvent)] == ["StampRetention"]
    assert (StampRetention('{"maxCount":5}') in plan.actions, plan.wake_after) == (True, 0.0)


def test_who_takes_the_schedule_away_has_not_said_that_its_snapshots_go() -> None:
    o = among(made(3), made(1), made(2), app=APP)
    assert StampRetention("{}") in decide_snapshot(o, NOW).actions


def test_another_application_of_the_name_says_nothing_about_them() -> None:
    o = among(made(3), made(1), made(2), app=keeping('{"maxCount":5}', "u-2"))
    assert goes(o)


def test_storage_that_goes_with_the_application_takes_their_resources_along() -> None:
    both = '{"maxCount":2,"withApp":true}'
    app = keeping(KEEP_TWO, **{"storage.deletionPolicy": "Delete"})
    assert StampRetention(both) in decide_snapshot(among(made(1), app=app), NOW).actions
    assert not goes(among(made(1, both), app=app))
    assert not goes(among(made(1, both), app_unreadable=True))
    assert goes(among(made(1, both)))
    assert goes(among(made(1, both), app=keeping(KEEP_TWO, "u-2")))


def to_be_read_back(days_ago: float, keep: str = KEEP_ONE) -> StreamSnapshot:
    found = made(days_ago, keep)
    return msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, verify_nonce=1))


@pytest.mark.parametrize("keep", [KEEP_ONE, KEEP_A_DAY])
def test_the_newest_that_is_known_to_be_whole_stays_until_a_later_one_was_read_back(keep: str) -> None:
    last, new, newer = made(3, keep), to_be_read_back(2, keep), to_be_read_back(1, keep)
    assert not goes(among(last, new))
    assert not goes(among(last, new, newer))
    assert goes(among(last, made(2, keep), newer))


def test_those_that_are_to_be_read_back_are_as_many_as_others() -> None:
    """Where none can be, for want of a node, they would be ever more."""
    assert goes(among(to_be_read_back(2), made(3, KEEP_ONE), to_be_read_back(1)))
    assert goes(among(made(4, KEEP_ONE), made(3, KEEP_ONE), to_be_read_back(2)))


def test_one_that_is_not_whole_is_as_good_as_none() -> None:
    damaged = made(1)
    no = Condition(type="Verified", status="False", reason="x", last_transition_time=TIME)
    status = msgspec.structs.replace(damaged.status, conditions=(*damaged.status.conditions, no))
    damaged = msgspec.structs.replace(damaged, status=status)
    assert not goes(among(made(3), damaged, made(2)))
    assert goes(among(made(3), damaged, made(2), made(1.5)))
