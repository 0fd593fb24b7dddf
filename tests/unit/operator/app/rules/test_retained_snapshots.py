"""The scheduled snapshots of an application that is deleted while its storage is retained. Pure."""

from typing import Any

import msgspec

from tidegate.api.stream_snapshot import SnapshotPhase, StreamSnapshot
from tidegate.api.streaming_app import DeletionPolicy, StreamingApp
from tidegate.app.observe import observe as observe_index
from tidegate.app.rules.plan import decide
from tidegate.cache.index import Index
from tidegate.engine.rules.actions import RemoveFinalizer
from tidegate.snapshots.actions import StampRetention
from tidegate.snapshots.index import SnapshotIndex
from tidegate.snapshots.observation import SnapshotMemory
from tidegate.snapshots.rules.plan import decide_snapshot
from tidegate_testing import snapshot_observations as snapshots
from tidegate_testing.observations import NOW, PLATFORM, app_with, deleted, launched, observe
from tidegate_testing.plans import acts
from tidegate_testing.snapshot_observations import ready_snapshot

GOES_ALONG = '{"maxCount":2,"withApp":true}'
STAYS = '{"maxCount":2}'
SCHEDULE = {"snapshots": {"schedule": "0 * * * *", "retention": {"maxCount": 2}}}


def scheduled(noted: str, *, uid: str = "u-1", label: str = "true") -> StreamSnapshot:
    """Return one of the schedule's that says this about how long it stays."""
    found = ready_snapshot()
    metadata = msgspec.structs.replace(
        found.metadata,
        labels={"tidegate.dev/scheduled": label},
        annotations={"tidegate.dev/retention": noted, "tidegate.dev/app-uid": uid},
    )
    assert found.status.app is not None
    status = msgspec.structs.replace(found.status, app=msgspec.structs.replace(found.status.app, uid=uid))
    spec = msgspec.structs.replace(found.spec, deletion_policy=DeletionPolicy.DELETE)
    return msgspec.structs.replace(found, metadata=metadata, spec=spec, status=status)


def doomed(change: dict[str, Any] | None = None) -> StreamingApp:
    return deleted(launched(app_with(SCHEDULE if change is None else change)))


def goes(app: StreamingApp, *those: StreamSnapshot) -> bool:
    return acts(decide(observe(app, snapshots=those), NOW), RemoveFinalizer)


def test_the_application_stays_until_none_says_that_it_goes_with_the_storage() -> None:
    """Whoever sets the policy to Retain because a purge does not succeed loses no snapshot with it."""
    app = doomed()
    plan = decide(observe(app, snapshots=(scheduled(STAYS), scheduled(GOES_ALONG))), NOW)
    assert (plan.reason, acts(plan, RemoveFinalizer)) == ("SnapshotsRetained", False)
    assert StampRetention(STAYS) in decide_snapshot(snapshots.observe(scheduled(GOES_ALONG), app=app), NOW).actions
    assert goes(app, scheduled(STAYS))


def test_an_application_whose_snapshot_nobody_may_change_says_what_its_deletion_waits_for() -> None:
    found = scheduled(GOES_ALONG)
    index, name = Index(), found.metadata.name
    index.put_app(doomed())
    index.of(SnapshotIndex).put(found)
    index.of(SnapshotIndex).memories[found.key] = SnapshotMemory(write_refused=("", "a policy denied it."))
    seen = observe_index(index, ("shop", "orders"), PLATFORM, NOW)
    assert seen is not None
    plan = decide(seen, NOW)
    assert (plan.reason, acts(plan, RemoveFinalizer)) == ("WriteRefused", False)
    assert plan.message == f"a policy denied it. To finish the deletion without StreamSnapshot {name}, delete it."
    assert "Stalled" in str(plan.actions)


def test_no_other_snapshot_keeps_the_application() -> None:
    ended = scheduled(GOES_ALONG)
    begun = msgspec.structs.replace(ended, status=msgspec.structs.replace(ended.status, phase=SnapshotPhase.COPYING))
    others = (begun, snapshots.deleted(ended), scheduled(GOES_ALONG, uid="u-2"), scheduled(GOES_ALONG, label="false"))
    assert goes(doomed(), *others)


def test_those_of_a_schedule_that_was_taken_away_are_seen() -> None:
    index = Index()
    index.put_app(doomed({}))
    index.of(SnapshotIndex).put(scheduled(GOES_ALONG))
    seen = observe_index(index, ("shop", "orders"), PLATFORM, NOW)
    assert seen is not None
    assert decide(seen, NOW).reason == "SnapshotsRetained"
