"""The table of upgrades: phase, case, next phase, reason; the first line that fits is taken. No I/O.

Each reconcile takes one line at most. It is written to the status before anything is done about it, so that another
process can continue after a crash.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple, TypeAlias, cast

import msgspec

from tidegate.api.spec_hash import recorded_version
from tidegate.api.streaming_app import UpgradePhase, UpgradeStatus
from tidegate.app.observation import Observation
from tidegate.app.rules.upgrade import (
    adoption,
    copying,
    gate,
    invalid_spec,
    messages,
    rehearsal,
    rollback,
    start_upgrade,
)
from tidegate.app.rules.upgrade.record import OLD_RUNS, UNDER_TEST, Step, applied
from tidegate.app.rules.upgrade.repartition import phase as repartition
from tidegate.app.rules.upgrade.starting_offsets import with_ignored_offsets
from tidegate.pods.records.read_pods import time_from_seconds
from tidegate_spark.contract.reasons import Reason

When: TypeAlias = Callable[[Observation, UpgradeStatus, float], Step | None]
"""What is the case: what the record says of it from then on, None if it is not."""


class Rule(NamedTuple):
    """A line of the table."""

    phases: tuple[UpgradePhase | None, ...]
    """Of the record; None: there is none yet."""
    when: When
    to: UpgradePhase | None = None
    """The next phase; None: it stays in the one it has."""
    reason: Reason | None = None
    """Of the next phase; None: as the case has it."""
    of_version: bool = False
    """It is about the version of the record, and the spec has to be that one."""


def of_version(*rules: Rule) -> tuple[Rule, ...]:
    """Return lines that apply only while the spec is the version that the record is about."""
    return tuple(rule._replace(of_version=True) for rule in rules)


NONE = None
COPYING, REHEARSING = UpgradePhase.COPYING, UpgradePhase.REHEARSING
STOPPING, REPARTITIONING = UpgradePhase.STOPPING, UpgradePhase.REPARTITIONING
GATE, COMPLETED, FAILED = UpgradePhase.GATE, UpgradePhase.COMPLETED, UpgradePhase.FAILED
ROLLING_BACK, ROLLED_BACK = UpgradePhase.ROLLING_BACK, UpgradePhase.ROLLED_BACK
REFUSED, WITHDRAWN = UpgradePhase.REFUSED, UpgradePhase.WITHDRAWN
RECORDED = tuple(UpgradePhase)
ANY = (NONE, *RECORDED)
OPEN = (*OLD_RUNS, *UNDER_TEST, ROLLED_BACK, REFUSED)
REPLACEABLE = (NONE, *OLD_RUNS, COMPLETED, ROLLING_BACK, ROLLED_BACK, REFUSED, WITHDRAWN)

# fmt: off
TABLE: tuple[Rule, ...] = (
    # --- what is: the storage and what runs are the truth ---
    Rule(ANY, adoption.driver_runs_elsewhere),
    Rule(ANY, start_upgrade.only_the_number_is_another),
    # --- what people want ---
    Rule(RECORDED, rollback.is_requested, ROLLING_BACK, Reason.ROLLBACK_REQUESTED),
    Rule(UNDER_TEST, rollback.spec_is_reverted, ROLLING_BACK, Reason.SPEC_REVERTED),
    Rule(OPEN, start_upgrade.spec_is_stable_version, WITHDRAWN, Reason.SPEC_REVERTED),
    Rule((STOPPING, GATE), start_upgrade.newer_version_after_a_rollback, ROLLING_BACK, Reason.SUPERSEDED),
    Rule(UNDER_TEST, start_upgrade.newer_version_on_what_there_is, STOPPING, Reason.SUPERSEDED),
    Rule((ROLLING_BACK,), start_upgrade.newer_version_without_a_way_back, STOPPING, Reason.SUPERSEDED),
    *of_version(Rule((STOPPING,), start_upgrade.other_offsets_before_the_launch, STOPPING, Reason.SPEC_CHANGED)),
    Rule(REPLACEABLE, start_upgrade.cannot_start, REFUSED),
    Rule(REPLACEABLE, start_upgrade.starts_without_state, STOPPING, Reason.STATE_ABANDONED),
    Rule(REPLACEABLE, start_upgrade.starts_with_other_offsets, STOPPING, Reason.SPEC_CHANGED),
    Rule(REPLACEABLE, start_upgrade.starts_with_a_copy, COPYING, Reason.SPEC_CHANGED),
    Rule(REPLACEABLE, start_upgrade.starts_with_the_stop, STOPPING, Reason.SPEC_CHANGED),
    *of_version(Rule((REFUSED,), start_upgrade.something_else_is_missing)),
    Rule((STOPPING,), adoption.version_was_not_stopped, GATE),
    Rule((STOPPING,), adoption.new_version_runs_already, GATE, Reason.LAUNCHED),
    # --- a version from which no pod can be built ---
    Rule(UNDER_TEST, invalid_spec.repartition_is_for_nothing, REFUSED),
    Rule(UNDER_TEST, invalid_spec.nothing_was_launched, REFUSED),
    Rule(UNDER_TEST, invalid_spec.work_can_be_undone, ROLLING_BACK),
    Rule((REPARTITIONING,), repartition.application_is_suspended, STOPPING, Reason.SUSPENDED),
    *of_version(
        # --- the previous version runs ---
        Rule(OLD_RUNS, invalid_spec.no_pod_can_be_made, REFUSED),
        Rule((COPYING,), copying.driver_is_gone, STOPPING, Reason.DRIVER_GONE),
        Rule((COPYING,), copying.state_cannot_be_repartitioned, REFUSED),
        Rule((COPYING,), copying.copied_for_a_rehearsal, REHEARSING, Reason.COPIED),
        Rule((COPYING,), copying.copied, STOPPING, Reason.COPIED),
        Rule((COPYING,), copying.copy_was_deleted_unread, REFUSED, Reason.COPY_REMOVED),
        Rule((COPYING,), copying.copy_was_deleted, STOPPING, Reason.COPY_REMOVED),
        Rule((COPYING,), copying.nothing_is_committed, REFUSED, Reason.STATE_MISSING),
        Rule((COPYING,), copying.copy_failed, REFUSED),
        Rule((COPYING,), copying.order_is_refused, STOPPING, Reason.ORDER_REFUSED),
        Rule((REHEARSING,), rehearsal.starts_or_pauses),
        Rule((REHEARSING,), rehearsal.failed, REFUSED, Reason.REHEARSAL_FAILED),
        Rule((REHEARSING,), rehearsal.passed, STOPPING, Reason.REHEARSAL_PASSED),
        Rule((REHEARSING,), rehearsal.is_inconclusive, STOPPING, Reason.REHEARSAL_INCONCLUSIVE),
        # --- nothing runs ---
        Rule((STOPPING,), repartition.driver_has_stopped, REPARTITIONING, Reason.STOPPED),
        Rule((REPARTITIONING,), repartition.succeeded, STOPPING, Reason.REPARTITIONED),
        Rule((REPARTITIONING,), repartition.another_attempt_may_do, REPARTITIONING),
        Rule((REPARTITIONING,), repartition.a_batch_is_to_be_finished, REFUSED, Reason.STATE_PARTITIONS_KEPT),
        Rule((REPARTITIONING,), repartition.failed, REFUSED),
        Rule((REPARTITIONING,), repartition.pod_is_there),
        # --- the new version runs ---
        Rule((GATE, FAILED), gate.is_passed, COMPLETED, Reason.STABLE),
        Rule((GATE,), gate.failed, ROLLING_BACK),
        Rule((GATE,), gate.failed_for_good, FAILED),
        Rule((GATE,), gate.lacks_records_and_did_nothing, ROLLING_BACK),
        Rule((GATE,), gate.is_idle_now),
        Rule((GATE,), gate.has_input_again),
        Rule((GATE,), gate.pod_is_refused_or_there),
    ),
    # --- the previous version runs again ---
    Rule((ROLLING_BACK,), rollback.stable_version_runs, ROLLED_BACK),
    # --- what is left of it ---
    Rule(RECORDED, gate.rollback_snapshot_is_settled),
    Rule((REFUSED, WITHDRAWN), rehearsal.copy_is_for_nothing),
    Rule(RECORDED, rollback.request_is_in_vain),
    Rule(RECORDED, gate.something_is_disposed_of),
    Rule(ANY, gate.first_version_is_stable),
)
# fmt: on
"""The first that applies is taken. What is comes before what people want, and that before what the application does."""

LAUNCHES = {STOPPING: GATE, GATE: GATE, ROLLING_BACK: ROLLING_BACK}
"""What the launch of a driver makes of a record; all other phases stay what they are."""


def next_step(o: Observation, now: float) -> Step | None:
    """Return the next step of the application's upgrade, None if there is none to be taken now."""
    upgrade = o.app.status.upgrade
    phase = upgrade.phase if upgrade is not None else None
    same = upgrade is not None and upgrade.to_spec_hash == o.spec_hash
    for rule in TABLE:
        # Lines for applications without a record are about the others as well, and look for themselves.
        applies = phase in rule.phases and (same or not rule.of_version)
        step = rule.when(o, cast(UpgradeStatus, upgrade), now) if applies else None
        if step is not None:
            return _with_what_follows(o, _led(o, rule, step, now), now)
    return None


def _with_what_follows(o: Observation, step: Step, now: float) -> Step:
    """Return a step that changes nothing of an upgrade, with the one that follows from it.

    Nothing may be launched or stopped in between. A spec that is set back with another number is the stable version
    only then, and would go on in the lineage of the version that is to be rolled back. What was taken over of a driver
    that runs voids an upgrade of before: without the next one its driver would be stopped, with no copy of its state
    and no rehearsal, for a version that may even be refused.
    """
    if step.upgrade is not None or (step.stable is None and not any(step.adopt)):
        return step
    then = next_step(with_step(o, step), now)
    if then is None:
        return step
    known = then.autoscaling or step.autoscaling
    return dataclasses.replace(then, stable=then.stable or step.stable, adopt=step.adopt, autoscaling=known)


def _led(o: Observation, rule: Rule, step: Step, now: float) -> Step:
    """Return the step with the phase that the rule leads to, and the version as long as that is under test."""
    if rule.to is None or step.upgrade is None:
        return step
    reason, since = rule.reason or step.upgrade.reason, time_from_seconds(now)
    version = ""
    if rule.to in UNDER_TEST:
        same = step.upgrade.to_spec_hash == o.spec_hash
        version = recorded_version(o.app.spec) if same else step.upgrade.to_spec
    led = msgspec.structs.replace(step.upgrade, phase=rule.to, reason=reason, phase_start_time=since, to_spec=version)
    return dataclasses.replace(step, upgrade=led)


def with_step(o: Observation, step: Step | None) -> Observation:
    """Return the observation as all that follows from the step is to see it."""
    if step is None:
        return o
    status = applied(o.app.status, step)
    if any(step.adopt):
        status = with_ignored_offsets(o, status)
    return dataclasses.replace(o, app=msgspec.structs.replace(o.app, status=status))


def at_launch(upgrade: UpgradeStatus | None, epoch: int, now: float) -> UpgradeStatus | None:
    """Return the record as it is from the launch of ``epoch`` on."""
    if upgrade is None or upgrade.phase not in LAUNCHES:
        return upgrade
    launched = msgspec.structs.replace(upgrade, phase=LAUNCHES[upgrade.phase], epoch=upgrade.epoch or epoch)
    if upgrade.phase is ROLLING_BACK:
        return launched
    launched = msgspec.structs.replace(launched, phase_start_time=time_from_seconds(now))
    if upgrade.phase is GATE:
        return launched
    return msgspec.structs.replace(launched, reason=Reason.LAUNCHED, message=messages.STARTED)
