"""How many snapshots may be on their way: the next is refused with a reason, and what was accepted goes on."""

import dataclasses

import msgspec
import pytest

from tidegate.api.stream_snapshot import (
    LABEL_AT_DELETION,
    LABEL_OF_MESSAGE,
    LABEL_SCHEDULED,
    SnapshotPhase,
    StreamSnapshot,
)
from tidegate.cache.kinds.open_resources import OpenCount
from tidegate.snapshots.rules.plan import decide_snapshot
from tidegate.snapshots.rules.refusing import MOST_OPEN
from tidegate_testing.observations import NOW
from tidegate_testing.snapshot_observations import begun, kinds, observe, observe_running, said, settled, snapshot

FULL = OpenCount(MOST_OPEN)
REFUSED = (SnapshotPhase.FAILED, "Stalled", "TooManySnapshots")


def imported() -> StreamSnapshot:
    known = snapshot()
    spec = msgspec.structs.replace(known.spec, app_ref=None, uri="s3://b/p/snapshots/x/manifest.json")
    return msgspec.structs.replace(known, spec=spec)


def test_one_behind_as_many_as_may_be_on_their_way_is_refused_and_nothing_else_is_done_about_it() -> None:
    plan = decide_snapshot(observe_running(snapshot(), waiting=FULL), NOW)
    assert (said(plan), kinds(plan), plan.wake_after) == (REFUSED, ["WriteSnapshotStatus"], None)
    assert said(decide_snapshot(observe_running(snapshot(), waiting=OpenCount(MOST_OPEN - 1)), NOW))[0] != REFUSED[0]


def test_the_reason_names_what_to_do() -> None:
    of_app = decide_snapshot(observe_running(snapshot(), waiting=FULL), NOW).message
    assert of_app == (
        "100 snapshots of StreamingApp orders are on their way already. When some of them have ended, create another "
        "StreamSnapshot."
    )
    without = decide_snapshot(observe(snapshot(), without_app=FULL), NOW).message
    assert without.startswith("StreamingApp orders does not exist, and 100 snapshots wait for such applications")


def test_those_that_wait_for_applications_that_are_not_there_have_one_bound_whatever_they_name() -> None:
    assert said(decide_snapshot(observe(snapshot(), without_app=FULL), NOW)) == REFUSED
    assert said(decide_snapshot(observe(snapshot(), without_app=OpenCount(99)), NOW))[2] == "AppNotFound"


def test_one_more_import_has_no_pod() -> None:
    plan = decide_snapshot(observe(imported(), waiting=FULL), NOW)
    assert (said(plan), kinds(plan)) == (REFUSED, ["WriteSnapshotStatus"])
    assert "are being imported into namespace shop already" in plan.message


def test_what_was_accepted_or_begun_goes_on_behind_any_number() -> None:
    waits = settled(observe(snapshot()))
    full = dataclasses.replace(waits, waiting=OpenCount(500), without_app=OpenCount(500))
    assert decide_snapshot(full, NOW).reason == "AppNotFound"
    lost = msgspec.structs.replace(snapshot(begun()), status=snapshot().status)
    assert decide_snapshot(observe_running(lost, waiting=OpenCount(500)), NOW).reason != "TooManySnapshots"


@pytest.mark.parametrize("label", [LABEL_AT_DELETION, LABEL_OF_MESSAGE, LABEL_SCHEDULED])
def test_those_that_tidegate_makes_have_as_much_room_again_and_no_more(label: str) -> None:
    own = snapshot(labels={label: "true"})
    assert decide_snapshot(observe_running(own, waiting=FULL), NOW).reason != "TooManySnapshots"
    assert said(decide_snapshot(observe_running(own, waiting=OpenCount(2 * MOST_OPEN)), NOW)) == REFUSED
