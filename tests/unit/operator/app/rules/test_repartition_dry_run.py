"""A pod that divides state which there cannot be: nothing is stopped for it, and nothing stays down. Pure."""

import dataclasses
from typing import Any

import msgspec
import pytest

from tidegate.api.spec_hash import spec_hash
from tidegate.api.streaming_app import Phase, RehearsalStatus, RepartitionStatus, StreamingApp, UpgradePhase
from tidegate.app import actions as do
from tidegate.app.observation import Observation, PodRejection
from tidegate.app.rules.plan import decide
from tidegate.app.rules.upgrade.repartition.dry_run import all_pods_to_try
from tidegate.cache.process_state import ProcessState, Refusal
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import NOW, driver_of, launched, observe
from tidegate_testing.plans import acts, verdict_of
from tidegate_testing.pod_refusals import OVER_THE_LIMIT
from tidegate_testing.upgrades import (
    BEGUN,
    IMAGE,
    PIN,
    A,
    B,
    edited,
    launch_of,
    of_earlier_operator,
    old_app,
    record,
    runs,
    stable,
    under_test,
    version_launched,
)

EIGHT: dict[str, Any] = {"state.partitions": 8}
TINY: dict[str, Any] = {"state.repartition.resources": {"requests": {"memory": "100Mi"}}}
POD = "orders-repartition-2"
WANTED = RepartitionStatus(partitions=8, previous_partitions=4)
ATTEMPT = RepartitionStatus(
    partitions=8, previous_partitions=4, snapshot_id=PIN, epoch=2, lineage=2, attempts=1, start_time=BEGUN
)
UNFIT = PodRejection("repartition", OVER_THE_LIMIT)
AGAIN = (
    "Then change spec.restartNonce to try again; to cancel, set spec.state.partitions back to the number in "
    "status.statePartitions."
)
WORDS = (
    "The API server refuses the repartition pod: maximum memory usage per Container is 1536Mi, but "
    "limit is 2Gi in container repartition, as a LimitRange of the namespace has it. Correct "
    f"spec.state.repartition.resources, or the LimitRange. {AGAIN}"
)
OF_SPEC = "The repartition pod cannot be built from the spec: spec.state.repartition.resources.requests.memory: "


def in_four(app: StreamingApp) -> StreamingApp:
    return msgspec.structs.replace(app, status=msgspec.structs.replace(app.status, state_partitions=4))


def asked_for(**change: Any) -> StreamingApp:
    """Return version A, which runs, with the wish for 8 partitions."""
    return edited(in_four(old_app()), {IMAGE: A, **EIGHT, **change})


def between(phase: UpgradePhase, known: RepartitionStatus = WANTED, **change: Any) -> StreamingApp:
    """Return version B, with 8 partitions, on its way."""
    rehearsal = RehearsalStatus(start_time=BEGUN) if phase is UpgradePhase.REHEARSING else None
    fields = {"repartition": known, "epoch": 0, "rehearsal": rehearsal, "last_lineage": known.lineage}
    return in_four(under_test(phase, {**EIGHT, **change}, **fields))


def refused(app: StreamingApp, text: str, seconds: float = 1.0) -> Observation:
    """Return the observation with the attempt's pod refused."""
    message = f"The API server refuses pod {POD}: {text or 'exceeded quota'}. Correct what it names; Tidegate retries."
    known = Refusal(POD, spec_hash(app), 2, Reason.LAUNCH_REFUSED, message, NOW - seconds, 1, server_message=text)
    return dataclasses.replace(observe(app), memory=ProcessState(refusal=known))


def test_what_a_limit_range_keeps_out_is_refused_before_anything_is_copied_or_stopped() -> None:
    plan = decide(observe(asked_for(), rejection=UNFIT, **runs(old_app())), NOW)
    assert not acts(plan, do.DeleteDriver, do.OrderSnapshots)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.REFUSED, "InvalidSpec")
    assert verdict_of(plan) == (Phase.RUNNING, "Stalled", "UpgradeRefused")
    assert record(plan).message == f"{WORDS} The previous version continues."


def test_so_is_one_that_can_not_be_made_of_the_spec() -> None:
    plan = decide(observe(asked_for(**TINY), **runs(old_app())), NOW)
    assert (acts(plan, do.DeleteDriver), record(plan).phase) == (False, UpgradePhase.REFUSED)
    assert record(plan).message.startswith(OF_SPEC)
    assert record(plan).message.endswith(f"{AGAIN} The previous version continues.")


@pytest.mark.parametrize("phase", [UpgradePhase.COPYING, UpgradePhase.REHEARSING])
def test_what_turns_out_only_while_the_state_is_copied_or_rehearsed_stops_nothing_either(phase: UpgradePhase) -> None:
    plan = decide(observe(between(phase), rejection=UNFIT, **runs(old_app())), NOW)
    assert (acts(plan, do.DeleteDriver), plan.reason) == (False, "UpgradeRefused")
    assert (record(plan).phase, record(plan).rehearsal) == (UpgradePhase.REFUSED, None)
    assert record(plan).message == f"{WORDS} The previous version continues."


@pytest.mark.parametrize(
    "message", [OVER_THE_LIMIT, 'Pod "x" is invalid: spec.containers[0].resources.requests: Invalid']
)
def test_what_turns_out_only_when_the_pod_is_made_has_the_old_version_go_on_at_once(message: str) -> None:
    plan = decide(refused(between(UpgradePhase.REPARTITIONING, ATTEMPT), message), NOW)
    upgrade, config = record(plan), launch_of(plan)
    assert upgrade.repartition is not None
    assert (upgrade.phase, upgrade.repartition.result, upgrade.repartition.cause) == (
        UpgradePhase.REFUSED,
        "Failed",
        "InvalidSpec",
    )
    assert "Correct spec.state.repartition.resources" in upgrade.message
    assert "The previous version continues with the state as it was." in upgrade.message
    assert (config.lineage, config.state_partitions, version_launched(plan)) == (1, 4, spec_hash(old_app()))


@pytest.mark.parametrize("phase", [UpgradePhase.STOPPING, UpgradePhase.REPARTITIONING])
def test_what_can_not_be_made_of_the_spec_after_the_stop_has_the_old_version_go_on_with_the_words(
    phase: UpgradePhase,
) -> None:
    known = ATTEMPT if phase is UpgradePhase.REPARTITIONING else WANTED
    plan = decide(observe(between(phase, known, **TINY)), NOW)
    assert (record(plan).phase, launch_of(plan).lineage) == (UpgradePhase.REFUSED, 1)
    assert record(plan).message.startswith(OF_SPEC)


def test_a_quota_may_let_it_in_so_it_is_waited_for() -> None:
    app = between(UpgradePhase.REPARTITIONING, ATTEMPT)
    plan = decide(refused(app, "", seconds=60.0), NOW)
    assert acts(plan, do.CreateRepartition)
    assert plan.reason == "UpgradeRepartitioning"


def test_one_that_works_already_is_not_ended_for_an_edit_of_what_it_gets() -> None:
    app = between(UpgradePhase.REPARTITIONING, msgspec.structs.replace(ATTEMPT, pod_uid="r-1"), **TINY)
    pod = driver_of(app, name=POD, role="repartition", uid="r-1", epoch=2, phase="Running", running=True)
    plan = decide(observe(app, repartitions=(pod,), rejection=UNFIT), NOW)
    assert (plan.reason, acts(plan, do.DeleteRepartition)) == ("UpgradeRepartitioning", False)


def test_a_newer_edit_whose_state_can_not_be_repartitioned_takes_no_version_s_place() -> None:
    app = between(UpgradePhase.REPARTITIONING, ATTEMPT)
    newer = edited(app, {IMAGE: B, "state.partitions": 16})
    plan = decide(observe(newer, rejection=UNFIT), NOW)
    assert (record(plan).phase, record(plan).to_spec_hash) == (UpgradePhase.REPARTITIONING, spec_hash(app))
    unknown = decide(observe(of_earlier_operator(newer), rejection=UNFIT), NOW)
    assert (record(unknown).phase, record(unknown).to_spec_hash) == (UpgradePhase.REFUSED, spec_hash(newer))
    assert launch_of(unknown).lineage == 1


def test_where_no_state_is_to_be_repartitioned_nothing_of_it_matters() -> None:
    for app in (edited(in_four(old_app()), {IMAGE: B, **TINY}), edited(old_app(), {IMAGE: B, **EIGHT, **TINY})):
        plan = decide(observe(app, rejection=UNFIT, **runs(old_app())), NOW)
        assert record(plan).phase is UpgradePhase.COPYING


def test_after_its_launch_the_number_is_nothing_against_a_version() -> None:
    done = msgspec.structs.replace(ATTEMPT, result="Completed")
    app = in_four(under_test(UpgradePhase.GATE, {**EIGHT, **TINY}, repartition=done, lineage=2, last_lineage=2))
    plan = decide(observe(app, rejection=UNFIT), NOW)
    assert version_launched(plan) == spec_hash(app)


@pytest.mark.parametrize(
    ("app", "tried"),
    [
        (asked_for(), ["driver", "repartition"]),
        (between(UpgradePhase.COPYING), ["driver", "repartition"]),
        (between(UpgradePhase.STOPPING), ["driver"]),
        (between(UpgradePhase.REPARTITIONING, ATTEMPT), ["driver"]),
        (asked_for(**TINY), ["driver"]),
        (edited(in_four(under_test()), {IMAGE: B, **EIGHT}), ["driver"]),
        (edited(in_four(old_app()), {IMAGE: B}), ["driver"]),
        (in_four(stable(launched(old_app(), 2))), []),
    ],
    ids=["edit", "copying", "stopping", "repartitioning", "not made", "postponed", "other edit", "stable"],
)
def test_it_is_tried_as_long_as_anything_could_be_stopped_for_it(app: StreamingApp, tried: list[str]) -> None:
    app = msgspec.structs.replace(app, status=msgspec.structs.replace(app.status, applied_spec_hash=""))
    pods = dict(all_pods_to_try(observe(app)))
    assert list(pods) == tried
    if "repartition" in pods:
        (container,) = pods["repartition"]["spec"]["containers"]
        assert (container["image"], container["resources"]["limits"]["memory"]) == (A, "2Gi")
