"""An older status that a backup brings back has no running driver stopped for the version that it names. Pure.

The driver shows that its version is the spec's. Whether its agent was heard already makes no difference.
"""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tidegate.api.spec_hash import recorded_version, spec_hash
from tidegate.api.streaming_app import Phase, StableSpec, StreamingApp, UpgradePhase
from tidegate.app.actions import CreateDriver, DeleteDriver
from tidegate.app.builders.references import Reference
from tidegate.app.observation import CheckedReferences
from tidegate.app.rules.plan import decide
from tidegate.app.rules.upgrade.effective_spec import ABANDON_ANNOTATION
from tidegate_spark.contract.protocol import ANNOTATION_SPEC_HASH
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import NOW, app_with, ended_with, launched, observe, report_of, running_driver
from tidegate_testing.plans import acts, settled

OLD = app_with({"application.args": ["old"]})
MISSING = CheckedReferences(missing=(Reference("ConfigMap", "settings", "", "spec.application.env[A]"),))


def restored(change: dict[str, Any]) -> StreamingApp:
    """Return an application whose spec runs in epoch 5, with the status of epoch 2, when another version was stable."""
    stable = StableSpec(spec_hash=spec_hash(OLD), spec=recorded_version(OLD.spec), lineage=1)
    known = {"applied_spec_hash": stable.spec_hash, "last_stable": stable, "phase": Phase.RUNNING}
    return launched(app_with(change), epoch=2, **known)


@pytest.mark.parametrize("is_heard", [False, True])
@pytest.mark.parametrize(
    ("change", "around"),
    [
        ({"application.args": ["new"]}, {}),
        ({"application.args": ["x" * 1000] * 480}, {}),
        ({"application.args": ["new"], "upgrade.mode": "Stateless"}, {}),
        ({"application.args": ["new"]}, {"references": MISSING}),
    ],
    ids=["an edit", "larger than the limit", "without state, unconfirmed", "with what is gone since"],
)
def test_what_runs_and_is_what_the_spec_says_goes_on(
    change: dict[str, Any], around: dict[str, Any], is_heard: bool
) -> None:
    app = restored(change)
    driver = running_driver(app, epoch=5, ready=True)
    o = observe(app, driver=driver, agent=report_of(driver, lineage=2) if is_heard else None, **around)
    for _ in range(5):
        plan = decide(o, NOW)
        assert (plan.rule, acts(plan, DeleteDriver, CreateDriver)) == (plan.rule, False)
        o = settled(o)
    assert (o.app.status.epoch, o.app.status.applied_spec_hash, o.app.status.phase) == (5, o.spec_hash, Phase.RUNNING)


def test_what_runs_is_not_to_be_stopped_for_ever_where_somebody_gives_up_its_very_lineage() -> None:
    app = restored({"application.args": ["new"], "upgrade.mode": "Stateless"})
    metadata = msgspec.structs.replace(app.metadata, annotations={ABANDON_ANNOTATION: "2"})
    app = msgspec.structs.replace(app, metadata=metadata)
    driver = running_driver(app, epoch=5, ready=True)
    o = observe(app, driver=driver, agent=report_of(driver, lineage=2))
    for _ in range(5):
        assert not acts(decide(o, NOW), DeleteDriver, CreateDriver)
        o = settled(o)
    upgrade = o.app.status.upgrade
    assert upgrade is not None
    assert (upgrade.phase, upgrade.epoch, upgrade.lineage) == (UpgradePhase.GATE, 5, 2)


@pytest.mark.parametrize("gone", ["its container ended", "its pod is gone"])
@pytest.mark.parametrize(
    ("change", "around"),
    [
        ({"application.args": ["x" * 1000] * 480}, {}),
        ({"application.args": ["new"], "upgrade.mode": "Stateless"}, {}),
        ({"application.args": ["new"]}, {"references": MISSING}),
    ],
    ids=["larger than the limit", "without state, unconfirmed", "with what is gone since"],
)
def test_what_ran_beside_it_is_not_followed_by_the_version_of_the_older_status_when_it_ends(
    change: dict[str, Any], around: dict[str, Any], gone: str
) -> None:
    app = restored(change)
    driver = running_driver(app, epoch=5, ready=True)
    o = observe(app, driver=driver, agent=report_of(driver, lineage=2), **around)
    for _ in range(5):
        o = settled(o)
    ended = replace(driver, running=False, ready=False, restarts=1, ended=ended_with(Reason.APPLICATION_FAILED, 1))
    o = replace(o, agent=None, driver=None if gone == "its pod is gone" else ended)
    for _ in range(3):
        plan = decide(o, NOW)
        made = [action.manifest for action in plan.actions if isinstance(action, CreateDriver)]
        versions = {each["metadata"]["annotations"][ANNOTATION_SPEC_HASH] for each in made}
        assert (plan.rule, versions <= {o.spec_hash}, acts(plan, DeleteDriver)) == (plan.rule, True, False)
        o = settled(o)
    upgrade = o.app.status.upgrade
    assert upgrade is None or upgrade.phase is not UpgradePhase.REFUSED
