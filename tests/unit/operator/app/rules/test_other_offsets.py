"""A restart may read topics from elsewhere with the state that there is, and be rolled back from there."""

import dataclasses
from typing import Any

import pytest

from tidegate.api.streaming_app import StreamingApp, UpgradePhase
from tidegate.app import actions as do
from tidegate.app.observation import Observation
from tidegate.app.rules.plan import decide
from tidegate_testing.observations import NOW, observe
from tidegate_testing.plans import acts, status_of, written
from tidegate_testing.upgrades import IMAGE, A, B, edited, launch_of, old_app, record, runs

OFFSETS = '{"orders": {"0": 120, "1": 0}}'
COMPACT = '{"orders":{"0":120,"1":0}}'
STOPS = (do.DeleteDriver, do.RecordLaunch)


def asked(change: dict[str, Any] | None = None, lineage: int = 1, offsets: str = OFFSETS) -> StreamingApp:
    """Return version A, which runs in lineage 1, with other offsets in its spec and another change."""
    order = {"upgrade.startingOffsets": {"lineage": lineage, "offsets": offsets}}
    return edited(old_app(), {IMAGE: A, **order, **({"restartNonce": 1} if change is None else change)})


def stopped() -> Observation:
    """Return the application once the previous version has stopped for it."""
    seen = observe(asked(), **runs(old_app()))
    return observe(written(seen))


def test_a_restart_with_other_offsets_stops_the_version_and_keeps_what_it_ended_with() -> None:
    plan = decide(observe(asked(), **runs(old_app())), NOW)
    upgrade = record(plan)
    assert acts(plan, do.DeleteDriver)
    assert (upgrade.phase, upgrade.lineage, upgrade.starting_offsets) == (UpgradePhase.STOPPING, 2, OFFSETS)
    assert upgrade.rollback_snapshot is not None
    assert (upgrade.rollback_snapshot.lineage, upgrade.rollback_snapshot.copy) == (1, "")


def test_the_new_lineage_starts_with_the_state_of_the_one_before_and_the_offsets_at_every_launch() -> None:
    first = decide(stopped(), NOW)
    known = status_of(first)
    assert known.upgrade is not None
    assert known.upgrade.rollback_snapshot is not None
    assert (known.lineage, known.upgrade.phase) == (2, UpgradePhase.GATE)
    again = decide(observe(written(stopped())), NOW + 1000)
    for plan in (first, again):
        config = launch_of(plan)
        start = config.start_from
        assert start is not None
        assert (config.lineage, start.lineage, start.offsets) == (2, 1, COMPACT)
        assert (start.snapshot, config.pin) == (known.upgrade.rollback_snapshot.id, None)
        assert start.storage.uri == config.storage.uri


def test_reverting_the_spec_goes_back_to_the_state_and_to_the_offsets_that_it_had() -> None:
    launched = written(stopped())
    reverted = edited(launched, {IMAGE: A})
    undone = written(observe(reverted))
    assert undone.status.upgrade is not None
    plan = decide(observe(undone), NOW + 1000) if not undone.status.start_from else decide(observe(reverted), NOW)
    config = launch_of(plan)
    assert config.start_from is not None
    assert (config.lineage, config.start_from.lineage, config.start_from.offsets) == (3, 1, "")


@pytest.mark.parametrize("lineage", [2, 7])
def test_of_another_lineage_they_mean_nothing(lineage: int) -> None:
    plan = decide(observe(asked({IMAGE: B}, lineage), **runs(old_app())), NOW)
    assert (record(plan).phase, record(plan).starting_offsets) == (UpgradePhase.COPYING, "")


def test_without_another_version_nothing_is_done_about_them() -> None:
    assert not acts(decide(observe(asked({}), **runs(old_app())), NOW), *STOPS)


def test_another_version_may_start_with_them_as_well() -> None:
    upgrade = record(decide(observe(asked({IMAGE: B}), **runs(old_app())), NOW))
    assert (upgrade.phase, upgrade.starting_offsets) == (UpgradePhase.STOPPING, OFFSETS)


def test_a_version_that_takes_the_place_of_one_that_was_not_launched_starts_with_them_too() -> None:
    before = stopped()
    newer = edited(before.app, {IMAGE: B, "upgrade.startingOffsets": {"lineage": 1, "offsets": OFFSETS}})
    config = launch_of(decide(dataclasses.replace(before, app=newer, spec_hash=observe(newer).spec_hash), NOW))
    assert config.start_from is not None
    assert (config.lineage, config.start_from.offsets) == (2, COMPACT)


def test_offsets_that_say_nothing_stop_nothing() -> None:
    plan = decide(observe(asked(offsets='{"orders":{}}'), **runs(old_app())), NOW)
    assert not acts(plan, *STOPS)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.REFUSED, "InvalidSpec")
    assert "spec.upgrade.startingOffsets.offsets" in record(plan).message
