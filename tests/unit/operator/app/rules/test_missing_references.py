"""An edit that names something that does not exist: what runs goes on, and it begins once that exists."""

import dataclasses

import msgspec
import pytest

from tidegate.api.spec_hash import spec_hash
from tidegate.api.streaming_app import UpgradePhase
from tidegate.app import actions as do
from tidegate.app.builders.references import Reference
from tidegate.app.observation import CheckedReferences, PodRejection
from tidegate.app.rules.plan import decide
from tidegate_testing.observations import NOW, app_with, launched, observe
from tidegate_testing.plans import acts, status_of, verdict_of, written
from tidegate_testing.upgrades import (
    IMAGE,
    A,
    B,
    C,
    edited,
    new_app,
    of_earlier_operator,
    old_app,
    record,
    runs,
    under_test,
)

MISSING = PodRejection(
    "driver",
    'pods "orders-driver" is forbidden: error looking up service account shop/team: serviceaccount "team" not found',
    "ServiceAccount team",
)
ACCOUNT = {IMAGE: B, "serviceAccountName": "team"}
STOPS = (do.DeleteDriver, do.RecordLaunch)
FIELD = "spec.driver.podTemplate.spec.volumes[0].configMap.name"
RULES = Reference("ConfigMap", "rules", field=FIELD)
KEY = Reference("ConfigMap", "limits", "eu.json", "spec.application.env[0].valueFrom.configMapKeyRef")
PASSWORD = Reference("Secret", "db", "password", "spec.application.env[1].valueFrom.secretKeyRef")
LACKS = CheckedReferences(missing=(RULES, KEY))
EDIT = edited(old_app(), {IMAGE: B})


def test_nothing_is_stopped_for_an_edit_that_names_a_config_map_which_does_not_exist() -> None:
    plan = decide(observe(EDIT, references=LACKS, **runs(old_app())), NOW)
    assert not acts(plan, *STOPS)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.REFUSED, "ReferenceMissing")
    assert record(plan).message == (
        f"The spec names what does not exist: ConfigMap rules ({FIELD}), key eu.json of ConfigMap limits "
        "(spec.application.env[0].valueFrom.configMapKeyRef). Create them, and the version is tried again by itself, "
        "or correct the spec. The previous version continues."
    )


def test_what_may_still_be_on_its_way_is_waited_for_before_anybody_is_called() -> None:
    """Who applies an application with its Secrets has no order in it; a tool that sees Stalled gives up."""
    seen = observe(EDIT, references=LACKS, **runs(old_app()))
    assert verdict_of(decide(seen, NOW))[1] == "Reconciling"
    refused = dataclasses.replace(seen, app=written(seen))
    patience = refused.app.spec.pod_start_timeout_seconds
    assert not acts(decide(refused, NOW + patience - 1), do.WriteStatus, *STOPS)
    assert verdict_of(decide(refused, NOW + patience))[1] == "Stalled"


def test_what_is_still_missing_is_named_and_the_upgrade_begins_by_itself_once_nothing_is() -> None:
    seen = observe(EDIT, references=LACKS, **runs(old_app()))
    refused = dataclasses.replace(seen, app=written(seen))
    assert not acts(decide(refused, NOW + 60), do.WriteStatus, *STOPS)
    less = dataclasses.replace(refused, references=CheckedReferences(missing=(KEY,)))
    named = record(decide(less, NOW + 60))
    assert (named.phase, named.number, "rules" in named.message) == (UpgradePhase.REFUSED, 1, False)
    assert "key eu.json of ConfigMap limits" in named.message
    come = record(decide(dataclasses.replace(refused, references=CheckedReferences()), NOW + 60))
    assert (come.phase, come.number) == (UpgradePhase.COPYING, 2)


def test_what_was_missing_is_not_taken_for_there_because_nobody_answers() -> None:
    seen = observe(EDIT, references=LACKS, **runs(old_app()))
    silent = CheckedReferences(unchecked=(RULES, KEY), unanswered=True)
    again = decide(dataclasses.replace(seen, app=written(seen), references=silent), NOW + 60)
    assert not acts(again, do.WriteStatus, *STOPS)


def test_what_may_not_be_read_holds_nothing_up_and_is_named_as_unchecked() -> None:
    plan = decide(observe(EDIT, references=CheckedReferences(unchecked=(PASSWORD,)), **runs(old_app())), NOW)
    assert record(plan).phase is UpgradePhase.COPYING
    assert record(plan).message.endswith(
        "Not checked whether it exists: key password of Secret db (spec.application.env[1].valueFrom.secretKeyRef)."
    )


@pytest.mark.parametrize("phase", [UpgradePhase.COPYING, UpgradePhase.REHEARSING])
def test_what_goes_before_the_stop_ends_the_upgrade_before_it(phase: UpgradePhase) -> None:
    plan = decide(observe(new_app(phase), references=LACKS, **runs(old_app())), NOW)
    assert not acts(plan, *STOPS)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.REFUSED, "ReferenceMissing")


def test_what_goes_between_stop_and_launch_lets_the_previous_version_go_on() -> None:
    plan = decide(observe(new_app(UpgradePhase.STOPPING), references=LACKS), NOW)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.REFUSED, "ReferenceMissing")
    assert acts(plan, do.RecordLaunch)


def test_a_failed_version_is_rolled_back_beside_such_an_edit_which_is_tried_once_nothing_is_missing() -> None:
    tested = under_test()
    beside = edited(of_earlier_operator(tested), {IMAGE: C})
    undone = record(decide(observe(beside, references=LACKS), NOW))
    assert (undone.phase, undone.reason) == (UpgradePhase.ROLLING_BACK, "ReferenceMissing")
    assert undone.to_spec_hash == spec_hash(tested)
    after = edited(new_app(UpgradePhase.ROLLED_BACK), {IMAGE: C})
    held = observe(after, references=LACKS, **runs(old_app()))
    refused = record(decide(held, NOW))
    assert (refused.phase, refused.reason) == (UpgradePhase.REFUSED, "ReferenceMissing")
    come = dataclasses.replace(held, app=written(held), references=CheckedReferences())
    assert record(decide(come, NOW + 60)).phase is UpgradePhase.COPYING


def test_a_restart_waits_for_what_has_gone_since_and_is_a_restart_once_it_is_there() -> None:
    again = edited(old_app(), {IMAGE: A, "restartNonce": 7})
    held = observe(again, references=LACKS, **runs(old_app()))
    plan = decide(held, NOW)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.REFUSED, "ReferenceMissing")
    assert not acts(plan, *STOPS)
    there = dataclasses.replace(held, app=written(held), references=CheckedReferences())
    restarted = decide(there, NOW + 60)
    stable = status_of(restarted).last_stable
    assert stable is not None
    assert stable.spec_hash == spec_hash(again)
    # By the same write: a version that became the stable one is launched by nobody before its record says so.
    assert record(restarted).phase is UpgradePhase.WITHDRAWN
    assert acts(restarted, do.DeleteDriver)


def test_a_version_under_test_is_not_stopped_for_one_that_lacks_something() -> None:
    tested = new_app(UpgradePhase.GATE)
    plan = decide(observe(edited(tested, {IMAGE: C}), references=LACKS, **runs(tested)), NOW)
    assert not acts(plan, *STOPS)


def test_nothing_is_stopped_for_an_edit_whose_account_does_not_exist() -> None:
    app = edited(old_app(), ACCOUNT)
    plan = decide(observe(app, rejection=MISSING, **runs(old_app())), NOW)
    assert not acts(plan, *STOPS)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.REFUSED, "ReferenceMissing")
    assert "ServiceAccount team (spec.serviceAccountName)." in record(plan).message
    assert "The previous version continues." in record(plan).message


def test_it_stays_so_while_the_account_is_missing_and_the_upgrade_begins_by_itself_once_it_is_there() -> None:
    app = edited(old_app(), ACCOUNT)
    seen = observe(app, rejection=MISSING, **runs(old_app()))
    refused = written(seen)
    again = decide(dataclasses.replace(seen, app=refused), NOW + 60)
    assert not acts(again, do.WriteStatus, *STOPS)
    come = decide(dataclasses.replace(seen, app=refused, rejection=None), NOW + 60)
    assert (record(come).phase, record(come).number) == (UpgradePhase.COPYING, 2)


@pytest.mark.parametrize("phase", [UpgradePhase.COPYING, UpgradePhase.REHEARSING])
def test_an_account_that_goes_before_the_stop_ends_the_upgrade_before_it(phase: UpgradePhase) -> None:
    app = new_app(phase)
    plan = decide(observe(app, rejection=MISSING, **runs(old_app())), NOW)
    assert not acts(plan, *STOPS)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.REFUSED, "ReferenceMissing")


def test_one_that_goes_between_stop_and_launch_lets_the_previous_version_go_on() -> None:
    plan = decide(observe(new_app(UpgradePhase.STOPPING), rejection=MISSING), NOW)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.REFUSED, "ReferenceMissing")
    assert acts(plan, do.RecordLaunch)


def test_an_application_without_a_stable_version_waits_and_says_for_what() -> None:
    app = launched(app_with())
    plan = decide(observe(edited(app, ACCOUNT), rejection=MISSING), NOW)
    assert verdict_of(plan)[1:] == ("Stalled", "ReferenceMissing")
    ready = status_of(plan).condition("Ready")
    assert ready is not None
    assert "is tried again by itself" in ready.message
    assert not acts(plan, *STOPS)


def test_a_spec_of_which_no_pod_can_be_made_is_not_tried_again_by_itself() -> None:
    app = edited(old_app(), ACCOUNT)
    wrong = PodRejection(
        "driver", 'Pod "orders-driver" is invalid: spec.tolerations[0].operator: Unsupported value: "Exist"'
    )
    seen = observe(app, rejection=wrong, **runs(old_app()))
    refused = written(seen)
    assert msgspec.structs.asdict(refused.status)["upgrade"].reason == "InvalidSpec"
    later = decide(dataclasses.replace(seen, app=refused, rejection=None), NOW + 60)
    assert not acts(later, *STOPS)
