"""An application that was never launched and has our finalizer from an earlier operator starts as any other does. Pure.

That operator gave it also to one of which it could make no pod. Whose status is lost has it from a launch, and has its
storage asked.
"""

import json
from typing import Any

import msgspec
import pytest

from tidegate.api.streaming_app import Phase, StreamingApp, StreamingAppSpec
from tidegate.app.actions import CreateDriver
from tidegate.app.rules.plan import decide
from tidegate.engine.rules.actions import AddFinalizer, RemoveFinalizer
from tidegate_spark.contract.protocol import CONFIG_VARIABLE, FINALIZER, OPENS_FROM_SNAPSHOT
from tidegate_testing.observations import NOW, app_with, launched, observe
from tidegate_testing.plans import acts, status_of, verdict_of, written
from tidegate_testing.snapshot_observations import ready_snapshot
from tidegate_testing.values import body

ORIGIN = ready_snapshot(launched(app_with(name="orders", uid="u-0")))
FROM_SNAPSHOT = {"startFrom": {"snapshotRef": {"name": "nightly"}}}
UNUSABLE = {"driver.resources.requests.memory": "16Mi"}
LARGE: dict[str, Any] = {"application.args": ["x" * 1000] * 480}


def spec_with(change: dict[str, Any]) -> StreamingAppSpec:
    return msgspec.convert(body(change)["spec"], StreamingAppSpec)


def of_earlier_operator(change: dict[str, Any]) -> StreamingApp:
    """Return an application of which no pod could be made, with the finalizer that an earlier operator gave it."""
    refused = written(observe(app_with(change, finalizers=[], name="variant", uid="u-9"), origin=ORIGIN))
    ready = refused.status.condition("Ready")
    assert ready is not None
    assert (refused.status.epoch, ready.reason in ("InvalidSpec", "ConfigurationTooLong")) == (0, True)
    return msgspec.structs.replace(refused, metadata=msgspec.structs.replace(refused.metadata, finalizers=(FINALIZER,)))


def test_it_waits_for_its_snapshot_and_has_the_finalizer_taken_off() -> None:
    fixed = msgspec.structs.replace(of_earlier_operator({**FROM_SNAPSHOT, **UNUSABLE}), spec=spec_with(FROM_SNAPSHOT))
    plan = decide(observe(fixed), NOW)
    assert verdict_of(plan) == (Phase.PENDING, "Stalled", "SnapshotNotFound")
    assert (acts(plan, RemoveFinalizer), acts(plan, CreateDriver)) == (True, False)


def test_it_starts_from_its_snapshot_when_that_is_there() -> None:
    fixed = msgspec.structs.replace(of_earlier_operator({**FROM_SNAPSHOT, **UNUSABLE}), spec=spec_with(FROM_SNAPSHOT))
    (create,) = [a for a in decide(observe(fixed, origin=ORIGIN), NOW).actions if isinstance(a, CreateDriver)]
    (container,) = create.manifest["spec"]["containers"]
    (config,) = [json.loads(each["value"]) for each in container["env"] if each["name"] == CONFIG_VARIABLE]
    assert (config["lineage"], config["opening"]) == (1, OPENS_FROM_SNAPSHOT)


def test_a_version_that_is_too_large_for_it_stays_refused() -> None:
    plan = decide(observe(of_earlier_operator(LARGE)), NOW)
    assert (plan.reason, acts(plan, AddFinalizer, CreateDriver)) == ("ConfigurationTooLong", False)


@pytest.mark.parametrize("origin", [None, ORIGIN], ids=["without its snapshot", "with its snapshot"])
def test_one_that_lost_its_status_while_no_pod_could_be_made_is_known_for_it_when_its_spec_is_fixed(
    origin: Any,
) -> None:
    lost = written(observe(app_with({**FROM_SNAPSHOT, **UNUSABLE}, name="variant", uid="u-9")))
    assert (lost.status.epoch, lost.status.lineage) == (1, 0)
    plan = decide(observe(msgspec.structs.replace(lost, spec=spec_with(FROM_SNAPSHOT)), origin=origin), NOW)
    assert (plan.rule, status_of(plan).epoch) == ("launch", 2)
    assert (acts(plan, CreateDriver), acts(plan, RemoveFinalizer)) == (True, False)


def test_a_large_version_that_ran_is_launched_again_although_its_status_was_lost_while_no_pod_could_be_made() -> None:
    lost = written(observe(app_with({**LARGE, **UNUSABLE}, name="variant", uid="u-9")))
    assert lost.status.epoch == 1
    plan = decide(observe(msgspec.structs.replace(lost, spec=spec_with(LARGE))), NOW)
    assert (plan.rule, acts(plan, CreateDriver)) == ("launch", True)
