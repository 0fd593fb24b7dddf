"""An edit that names an account or class that does not exist: what runs goes on, and it begins once that exists."""

import dataclasses

import msgspec
import pytest

from tidegate.decide import actions as do
from tidegate.decide.plan import decide
from tidegate.model.streaming_app import UpgradePhase
from tidegate.observe.observation import Unfit
from tidegate_testing.observations import NOW, app_with, launched, observe
from tidegate_testing.plans import acts, status_of, verdict_of, written
from tidegate_testing.upgrades import IMAGE, B, edited, new_app, old_app, record, runs

MISSING = Unfit(
    "driver",
    'pods "orders-driver" is forbidden: error looking up service account shop/team: serviceaccount "team" not found',
    "ServiceAccount team",
)
ACCOUNT = {IMAGE: B, "serviceAccountName": "team"}
STOPS = (do.DeleteDriver, do.RecordLaunch)


def test_nothing_is_stopped_for_an_edit_whose_account_does_not_exist() -> None:
    app = edited(old_app(), ACCOUNT)
    plan = decide(observe(app, unfit=MISSING, **runs(old_app())), NOW)
    assert not acts(plan, *STOPS)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.REFUSED, "ReferenceMissing")
    assert "ServiceAccount team" in record(plan).message
    assert "The previous version continues." in record(plan).message


def test_it_stays_so_while_the_account_is_missing_and_the_upgrade_begins_by_itself_once_it_is_there() -> None:
    app = edited(old_app(), ACCOUNT)
    seen = observe(app, unfit=MISSING, **runs(old_app()))
    refused = written(seen)
    again = decide(dataclasses.replace(seen, app=refused), NOW + 60)
    assert not acts(again, do.WriteStatus, *STOPS)
    come = decide(dataclasses.replace(seen, app=refused, unfit=None), NOW + 60)
    assert (record(come).phase, record(come).number) == (UpgradePhase.COPYING, 2)


@pytest.mark.parametrize("phase", [UpgradePhase.COPYING, UpgradePhase.REHEARSING])
def test_an_account_that_goes_before_the_stop_ends_the_upgrade_before_it(phase: UpgradePhase) -> None:
    app = new_app(phase)
    plan = decide(observe(app, unfit=MISSING, **runs(old_app())), NOW)
    assert not acts(plan, *STOPS)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.REFUSED, "ReferenceMissing")


def test_one_that_goes_between_stop_and_launch_lets_the_previous_version_go_on() -> None:
    plan = decide(observe(new_app(UpgradePhase.STOPPING), unfit=MISSING), NOW)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.REFUSED, "ReferenceMissing")
    assert acts(plan, do.RecordLaunch)


def test_an_application_without_a_stable_version_waits_and_says_for_what() -> None:
    app = launched(app_with())
    plan = decide(observe(edited(app, ACCOUNT), unfit=MISSING), NOW)
    assert verdict_of(plan)[1:] == ("Stalled", "ReferenceMissing")
    ready = status_of(plan).condition("Ready")
    assert ready is not None
    assert "is tried again by itself" in ready.message
    assert not acts(plan, *STOPS)


def test_a_spec_of_which_no_pod_can_be_made_is_not_tried_again_by_itself() -> None:
    app = edited(old_app(), ACCOUNT)
    wrong = Unfit("driver", 'Pod "orders-driver" is invalid: spec.tolerations[0].operator: Unsupported value: "Exist"')
    seen = observe(app, unfit=wrong, **runs(old_app()))
    refused = written(seen)
    assert msgspec.structs.asdict(refused.status)["upgrade"].reason == "InvalidSpec"
    later = decide(dataclasses.replace(seen, app=refused, unfit=None), NOW + 60)
    assert not acts(later, *STOPS)
