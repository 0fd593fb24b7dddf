"""An edit into a place that another application has: nothing is stopped for it, and it begins once that is free."""

import dataclasses

import pytest

from tidegate.api.spec_hash import spec_hash
from tidegate.api.streaming_app import Phase, StreamingApp, UpgradePhase
from tidegate.app import actions as do
from tidegate.app.rules.plan import decide
from tidegate_testing.observations import NOW, app_with, launched, observe, running_driver
from tidegate_testing.plans import acts, status_of, verdict_of, written
from tidegate_testing.upgrades import IMAGE, B, edited, launch_of, old_app, record, runs, upgrading, version_launched

STOPS = (do.DeleteDriver, do.RecordLaunch)
MOVED = {"storage.endpoint": "http://other:9000"}
EDIT = edited(old_app(), {IMAGE: "shop/orders:1", **MOVED})
SEEN = observe(EDIT, rival="billing", **runs(old_app()))


def moving(phase: UpgradePhase) -> StreamingApp:
    """Return an application on its way into the other store."""
    old = old_app()
    return upgrading(edited(old, {IMAGE: B, **MOVED}), old, phase)


def test_nothing_is_stopped_for_an_edit_into_the_place_of_another_application_which_is_named_with_what_to_do() -> None:
    plan = decide(SEEN, NOW)
    assert not acts(plan, *STOPS)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.REFUSED, "StorageConflict")
    assert record(plan).message == (
        "spec.storage names a store in which application billing has an overlapping place. Revert the edit of "
        "spec.storage; or delete the other one or have it stable in another store, and the version is tried again by "
        "itself. The previous version continues."
    )
    assert verdict_of(plan)[:2] == ("Running", "Stalled")


def test_what_runs_goes_on_in_its_own_place_also_when_its_pod_is_lost() -> None:
    refused = written(SEEN)
    again = decide(dataclasses.replace(SEEN, app=refused), NOW + 60)
    assert not acts(again, do.WriteStatus, *STOPS)
    lost = decide(observe(refused, rival="billing"), NOW + 1000)
    assert (version_launched(lost), launch_of(lost).storage.endpoint) == (spec_hash(old_app()), "")


def test_the_edit_is_followed_by_itself_once_the_other_one_has_left_the_place() -> None:
    free = record(decide(dataclasses.replace(SEEN, app=written(SEEN), rival=""), NOW + 60))
    assert (free.phase, free.number) == (UpgradePhase.COPYING, 2)


def test_who_else_has_the_place_by_now_is_named() -> None:
    other = record(decide(dataclasses.replace(SEEN, app=written(SEEN), rival="refunds"), NOW + 60))
    assert (other.phase, other.number, "application refunds" in other.message) == (UpgradePhase.REFUSED, 1, True)


@pytest.mark.parametrize("phase", [UpgradePhase.COPYING, UpgradePhase.REHEARSING])
def test_a_place_that_is_taken_before_the_stop_ends_the_upgrade_before_it(phase: UpgradePhase) -> None:
    plan = decide(observe(moving(phase), rival="billing", **runs(old_app())), NOW)
    assert not acts(plan, *STOPS)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.REFUSED, "StorageConflict")


def test_a_place_that_is_taken_between_stop_and_launch_lets_the_previous_version_go_on_in_its_own() -> None:
    plan = decide(observe(moving(UpgradePhase.STOPPING), rival="billing"), NOW)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.REFUSED, "StorageConflict")
    assert launch_of(plan).storage.endpoint == ""


def test_a_driver_that_was_never_stable_is_left_running() -> None:
    app = launched(app_with(), phase=Phase.RUNNING)
    plan = decide(observe(edited(app, MOVED), rival="billing", driver=running_driver(app, ready=True)), NOW)
    assert not acts(plan, *STOPS)
    assert verdict_of(plan) == ("Running", "Stalled", "StorageConflict")
    ready = status_of(plan).condition("Ready")
    assert ready is not None
    assert "application billing" in ready.message


def test_an_application_whose_own_place_two_have_is_not_stopped_for_an_edit_of_something_else() -> None:
    plan = decide(observe(edited(old_app(), {IMAGE: B}), rival="billing", **runs(old_app())), NOW)
    assert not acts(plan, *STOPS)
    assert record(plan).reason == "StorageConflict"
