"""Whatever a status says, decisions about a world in which nothing changes come to rest. Pure.

A status may be older than what runs, or from a course that nobody has thought of. A decision that does not agree with
the one before about what it is about writes the status without end.
"""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tidegate.api.spec_hash import recorded_version, spec_hash
from tidegate.api.streaming_app import (
    Phase,
    RepartitionStatus,
    RollbackSnapshot,
    SnapshotBatch,
    StableSpec,
    StartedFrom,
    StreamingApp,
    StreamingAppStatus,
    UpgradeMode,
    UpgradePhase,
    UpgradeStatus,
    encode_status,
)
from tidegate.app import actions as do
from tidegate.app.builders.references import Reference
from tidegate.app.observation import CheckedReferences, Observation
from tidegate.app.rules.plan import decide
from tidegate.app.rules.upgrade.effective_spec import ABANDON_ANNOTATION
from tidegate.cache.process_state import ProcessState
from tidegate_spark.contract.protocol import DriverState, QueryReport
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.examples import gate_share
from tidegate_testing.observations import NOW, app_with, driver_of, ended_with, observe, report_of, running_driver
from tidegate_testing.upgrades import COPY, IMAGE, NO_POD, PIN, A, B, C

MOST_DECISIONS = 8
"""Steps that follow from each other in one moment: a status that is lost, an upgrade that starts, its refusal."""
SECRET = {"application.env": [{"name": "PASSWORD", "value": "of-the-application"}]}
VERSIONS: tuple[dict[str, Any], ...] = (
    *({IMAGE: image} for image in (A, B, C)),
    {IMAGE: A, "restartNonce": 2},
    {IMAGE: A, **SECRET},
    *({**NO_POD, IMAGE: image} for image in (A, B, C)),
)
PHASES = (*UpgradePhase, *3 * (UpgradePhase.REFUSED,))
"""What is refused is asked for again with each decision: the phase in which two of them can differ without end."""
OFFSETS = {"lineage": 1, "offsets": '{"orders":{"0":5}}'}
EARLIER = datetime.fromtimestamp(NOW - 60, UTC)
REASONS = (
    *(Reason.INVALID_SPEC, Reason.REFERENCE_MISSING, Reason.STATE_PARTITIONS_KEPT, Reason.ABANDON_STATE_UNCONFIRMED),
    *(Reason.SUPERSEDED, Reason.LAUNCHED, Reason.REHEARSAL_FAILED, Reason.ROLLBACK_REQUESTED),
)
MISSING = CheckedReferences(missing=(Reference("Secret", "s", field="spec.x"),))


@st.composite
def version(draw: DrawFn) -> dict[str, Any]:
    """Return what makes a version: a program and a number of partitions."""
    return {**draw(st.sampled_from(VERSIONS)), "state.partitions": draw(st.sampled_from((4, 8)))}


@st.composite
def application(draw: DrawFn) -> StreamingApp:
    """Return an application as its owner left it."""
    upgrade: dict[str, Any] = {"mode": draw(st.sampled_from(UpgradeMode)).value}
    upgrade |= draw(st.sampled_from(({}, {}, {"startingOffsets": OFFSETS}, {"rollbackTo": PIN}, {"rehearsal": {}})))
    change = {**draw(version()), "upgrade": upgrade, "suspend": draw(st.sampled_from((False, False, False, True)))}
    given_up = {ABANDON_ANNOTATION: "1"} if draw(st.booleans()) else {}
    return app_with(change, generation=2, annotations=given_up)


@st.composite
def stable_version(draw: DrawFn) -> StableSpec:
    app = app_with(draw(version()))
    return StableSpec(spec_hash=spec_hash(app), spec=recorded_version(app.spec), lineage=1, stable_time=EARLIER)


@st.composite
def record(draw: DrawFn, asked: StreamingApp) -> UpgradeStatus:
    """Return the record of an upgrade, of the spec's version or another one."""
    phase, mode = draw(st.sampled_from(PHASES)), draw(st.sampled_from(UpgradeMode))
    of = asked if draw(st.booleans()) else app_with(draw(version()))
    repartitions = phase is UpgradePhase.REPARTITIONING or draw(st.booleans())
    repartition = RepartitionStatus(partitions=8, previous_partitions=4) if repartitions else None
    if phase is UpgradePhase.REPARTITIONING and repartition is not None:
        repartition = msgspec.structs.replace(repartition, epoch=2, lineage=2, attempts=1, start_time=EARLIER)
    has_snapshot = repartitions or draw(st.booleans())
    copying = phase in (UpgradePhase.COPYING, UpgradePhase.REHEARSING)
    return UpgradeStatus(
        phase=phase,
        mode=mode,
        number=1,
        from_spec_hash=spec_hash(app_with(draw(version()))),
        to_spec_hash=spec_hash(of),
        to_spec=recorded_version(of.spec) if draw(st.booleans()) else "",
        lineage=draw(st.sampled_from((1, 2))),
        start_time=EARLIER,
        phase_start_time=EARLIER,
        reason=draw(st.sampled_from(REASONS)),
        message="It was so.",
        epoch=draw(st.sampled_from((0, 1, 2))),
        rollback_snapshot=RollbackSnapshot(id=PIN, lineage=1, copy=COPY) if has_snapshot or copying else None,
        previous=draw(st.none() | stable_version()),
        repartition=repartition,
        queries=("main",),
    )


@st.composite
def status(draw: DrawFn, asked: StreamingApp) -> StreamingAppStatus:
    epoch = draw(st.sampled_from((1, 1, 2, 0)))
    batches = (SnapshotBatch(name="main", batch_id=5),) if draw(st.sampled_from((True, True, False))) else ()
    began = StartedFrom(
        snapshot_name=PIN, id=PIN, app_uid="u-1", lineage=2, uri="s3://streams/apps", snapshot_lineage=1
    )
    return StreamingAppStatus(
        phase=draw(st.sampled_from(Phase)),
        epoch=epoch,
        lineage=draw(st.sampled_from((1, 2))) if epoch else 0,
        observed_generation=draw(st.sampled_from((1, 2))),
        state_partitions=draw(st.sampled_from((4, 4, 8, 0))),
        applied_spec_hash=spec_hash(draw(st.sampled_from((asked, app_with(draw(version())))))) if epoch else "",
        batch=5 if batches else None,
        batches=batches,
        start_from=draw(st.sampled_from((None, None, began))),
        last_stable=draw(st.none() | stable_version()),
        upgrade=draw(st.none() | record(asked)),
    )


@st.composite
def worlds(draw: DrawFn) -> Observation:
    """Return an application with some status, beside which there is a driver of some version or none."""
    app = draw(application())
    app = msgspec.structs.replace(app, status=draw(status(app)))
    known: dict[str, Any] = {"memory": ProcessState(status_written_at=NOW - 3600)}
    if draw(st.sampled_from((False, False, True))):
        known["references"] = MISSING
    how, of = draw(st.sampled_from(("none", "starts", "runs", "runs", "ended"))), draw(version())
    runs = draw(st.sampled_from((spec_hash(app), app.status.applied_spec_hash, spec_hash(app_with(of)))))
    fields: dict[str, Any] = {"spec_hash": runs, "epoch": max(1, app.status.epoch + draw(st.sampled_from((0, 0, 1))))}
    if how == "starts":
        known["driver"] = driver_of(app, **fields)
    if how == "ended":
        end = ended_with(draw(st.sampled_from((Reason.COMPLETED, Reason.QUERY_REFUSED))), 0)
        known["driver"] = driver_of(app, phase="Succeeded", ended=end, **fields)
    if how == "runs":
        known["driver"] = running_driver(app, ready=True, ready_time=NOW - 900, start_time=NOW - 900, **fields)
        query = QueryReport("main", batch_id=9, committed=draw(st.sampled_from((0, 1, 9))), active=True)
        lineage = draw(st.sampled_from((0, 1, 2)))
        known["agent"] = report_of(known["driver"], DriverState.RUNNING, queries=(query,), lineage=lineage)
    return observe(app, **known)


@settings(max_examples=gate_share(3000))
@given(worlds())
def test_decisions_about_a_world_in_which_nothing_changes_come_to_rest(o: Observation) -> None:
    seen = []
    for _ in range(MOST_DECISIONS):
        plan = decide(o, NOW)
        launches = any(isinstance(action, do.RecordLaunch | do.CreateDriver) for action in plan.actions)
        written = next((action.status for action in plan.actions if isinstance(action, do.WriteStatus)), None)
        if launches or written is None or encode_status(written) == encode_status(o.app.status):
            return
        seen.append(f"{plan.rule}: {json.dumps(encode_status(written).get('upgrade'), default=str)}")
        app = msgspec.structs.replace(o.app, status=written)
        o = dataclasses.replace(o, app=app, memory=dataclasses.replace(o.memory, status_written_at=NOW))
    raise AssertionError("\n".join(seen))
