"""decide(observation, now) -> Plan: the operator's policy as two tables of rules, read from top to bottom.

Pure: no I/O, no clock, no randomness; the same observation and time give the same plan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tidegate.api.streaming_app import StreamingAppStatus, UpgradePhase
from tidegate.app.actions import Action, ConfirmDriverGone, DeleteExecutor, Plan, RecordLaunch, WriteStatus
from tidegate.app.observation import Observation
from tidegate.app.rules.deleted import deletion, last_snapshot, origin_release
from tidegate.app.rules.housekeeping import (
    HOUSEKEEPING,
    check_configuration_in,
    check_labels_in,
    restore_labels,
)
from tidegate.app.rules.launch import configuration, launch
from tidegate.app.rules.launch.plaintext_secrets import secret_events
from tidegate.app.rules.live import restarting, running, start_from, suspension
from tidegate.app.rules.live.autoscaling import scaling_events
from tidegate.app.rules.live.availability import works
from tidegate.app.rules.live.ended_driver import judge_crashed_driver, judge_ended_driver, replace_lost_driver
from tidegate.app.rules.live.ignored_instances import ignored_instances_event
from tidegate.app.rules.live.ignored_periods import ignored_periods_event
from tidegate.app.rules.live.restarting import cut_batch_event
from tidegate.app.rules.pods import ends
from tidegate.app.rules.pods.disowned import wait_for_disowned_driver
from tidegate.app.rules.pods.executors import rescale_live
from tidegate.app.rules.pods.work_pod import NOTHING, Kept
from tidegate.app.rules.schedule import evaluate_schedule
from tidegate.app.rules.status import build_status, write_is_due_in
from tidegate.app.rules.upgrade.adoption import adoption_event
from tidegate.app.rules.upgrade.effective_spec import with_effective_spec, with_version_under_test
from tidegate.app.rules.upgrade.invalid_spec import invalid_edit_condition
from tidegate.app.rules.upgrade.rehearsal import keep_rehearsal
from tidegate.app.rules.upgrade.repartition.deferred import (
    about_all,
    deferred_condition,
    deferred_event,
    with_kept_number,
)
from tidegate.app.rules.upgrade.repartition.phase import kept_condition, kept_event
from tidegate.app.rules.upgrade.repartition.pod import hold_for_repartition, keep_repartition
from tidegate.app.rules.upgrade.reporting import (
    apply_upgrade_to_condition,
    is_reported,
    reason_of,
    refuse_unknown_version,
    step_events,
)
from tidegate.app.rules.upgrade.table import next_step, with_step
from tidegate.app.rules.verdict import Verdict
from tidegate.engine.rules.actions import PublishEvent
from tidegate.engine.rules.health import Health
from tidegate.engine.rules.pauses import hour_of
from tidegate.engine.rules.table import earliest, first_verdict
from tidegate.pods.records.names import driver_pod_name

Rule: TypeAlias = Callable[[Observation, float], Verdict | None]

DELETION_RULES: tuple[Rule, ...] = (
    deletion.leave_released_alone,
    deletion.stop_deleted_driver,
    deletion.remove_executors,
    deletion.remove_rehearsals,
    deletion.remove_repartitions,
    origin_release.release_origin,
    deletion.wait_for_disowned_driver,
    last_snapshot.take_last_snapshot,
    deletion.purge_storage,
    last_snapshot.mark_purged_snapshots,
    last_snapshot.retain_scheduled_snapshots,
    deletion.release,
)
"""For a resource that somebody deleted."""

RULES: tuple[Rule, ...] = (
    launch.refuse_overlapping_storage,
    restarting.stay_ended,
    restarting.clear_earlier_driver,
    running.wait_for_driver_to_go,
    running.stop_driver_of_earlier_app,
    suspension.stop_driver_of_suspended,
    running.wait_to_hear_later_driver,
    running.keep_driver_of_invalid_spec,
    running.stop_driver_of_changed_spec,
    restarting.ignore_stale_pod,
    ends.obey_policy_never,
    replace_lost_driver,
    start_from.leave_empty_place,
    restarting.adopt_lost_epoch,
    restarting.judge_fenced_driver,
    ends.judge_exhausted_driver,
    restarting.start_finished_again,
    judge_ended_driver,
    configuration.replace_unconfigured_driver,
    running.judge_unstarted_driver,
    running.judge_reported_driver,
    running.judge_ready_driver,
    running.judge_silent_driver,
    judge_crashed_driver,
    running.wait_for_driver_to_start,
    launch.leave_finished_alone,
    suspension.stay_suspended,
    hold_for_repartition,
    restarting.leave_failed_alone,
    refuse_unknown_version,
    start_from.wait_for_origin,
    launch.wait_after_refused_launch,
    launch.wait_before_relaunch,
    launch.launch,
)
"""For every other one. The first rule that applies decides; the last two always find something."""


def decide(observation: Observation, now: float) -> Plan:
    """Return what to do about one application.

    Args:
        observation: everything that is known.
        now: seconds since the epoch.
    """
    asked, deleted = observation, observation.app.metadata.deletion_timestamp is not None
    wanted = asked if deleted else with_kept_number(asked)
    stored = wanted if deleted else with_version_under_test(wanted)
    step = None if deleted else next_step(stored, now)
    if stored is wanted:
        step = about_all(step, stored, asked)
    # From here on everything is about the version that is in force, as the step leaves it.
    observation = stored if deleted else with_effective_spec(with_step(stored, step), asked.spec_hash)
    name, verdict = first_verdict(DELETION_RULES if deleted else RULES, observation, now)
    before = (*restore_labels(observation), *verdict.before)
    if verdict.silent:
        return Plan(name, verdict.reason, verdict.message, before + verdict.after, verdict.wake_after)
    runs = works(verdict)
    if not deleted:
        adjusted = apply_upgrade_to_condition(observation, stored.spec_hash, verdict, now)
        verdict = deferred_condition(asked, kept_condition(observation, adjusted))
        if stored is not wanted:
            verdict = invalid_edit_condition(wanted, verdict, observation.app.status.upgrade)
    status = build_status(observation, verdict, now, runs=runs)
    due, of_step = write_is_due_in(stored, status, now), (*adoption_event(stored, step), *step_events(stored, step))
    events = _events_to_publish(stored, verdict, status, of_step if deleted else (*of_step, *deferred_event(asked)))
    actions: tuple[Action, ...] = (*before, *(() if deleted else _events_of_version(observation, status, now)))
    if verdict.launch:
        # Actions that can wait come after the pod.
        events = (*events, *kept_event(observation, status))
        actions = (*actions, RecordLaunch(status, verdict.unplanned), *verdict.after, *events)
    else:
        # Events come before the status, which marks them as published: a repeated event has the same name, while one
        # that a later conflict cut off would be lost.
        written = (WriteStatus(status),) if due == 0.0 else ()
        actions = (*actions, *events, *written, *verdict.after)
    schedule = evaluate_schedule(observation, now)
    of_schedule = () if verdict.launch else schedule.actions
    beside = NOTHING if deleted else _beside(observation, with_step(stored, step), now, of_schedule, verdict)
    # Nobody else wakes for what was written here, and after a step there may be another one to take.
    again = 0.0 if step is not None else None
    checks = (check_configuration_in(observation, now), check_labels_in(observation))
    wake_after = earliest(verdict.wake_after, due or None, again, beside.wake_after, *checks, schedule.wake_after)
    return Plan(name, verdict.reason, verdict.message, (*actions, *beside.actions), wake_after, observation.spec_hash)


def _events_of_version(o: Observation, status: StreamingAppStatus, now: float) -> tuple[Action, ...]:
    """Return the events about the version that is in force, whatever the verdict is."""
    ignored = (*ignored_instances_event(o, now), *ignored_periods_event(o))
    return (*cut_batch_event(o, now), *scaling_events(o, now), *ignored, *secret_events(o, status))


def _beside(o: Observation, asked: Observation, now: float, of_schedule: tuple[Action, ...], verdict: Verdict) -> Kept:
    """Return what is done whatever the verdict is, and when it is to be looked at again.

    Args:
        o: about the version that is in force.
        asked: about the spec's version, whichever is in force.
        now: seconds since the epoch.
        of_schedule: what the schedule of snapshots has done.
        verdict: what is done before.
    """
    rehearsal, repartition = keep_rehearsal(asked, now), keep_repartition(asked, now)
    kept = _with_driver_looked_for(o, tuple(action for keep in HOUSEKEEPING for action in keep(o, now)), now, verdict)
    # An agent that does not take its order keeps nothing else back: it is given last of all, and tried again.
    actions = (*kept.actions, *rehearsal.actions, *repartition.actions, *of_schedule, *rescale_live(o, now))
    return Kept(actions, earliest(kept.wake_after, rehearsal.wake_after, repartition.wake_after))


def _with_driver_looked_for(o: Observation, kept: tuple[Action, ...], now: float, verdict: Verdict) -> Kept:
    """Return housekeeping that removes executors only once it is known that their driver is gone.

    One that lost its labels while no operator ran is not known, and runs, with its executors.
    """
    looked_for = verdict.launch or any(isinstance(action, ConfirmDriverGone) for action in verdict.before)
    if o.driver is not None or looked_for or not any(isinstance(action, DeleteExecutor) for action in kept):
        return Kept(kept)
    found = wait_for_disowned_driver(o, verdict.phase, now)
    if found is None:
        return Kept((ConfirmDriverGone(driver_pod_name(o.app.metadata.name)), *kept))
    event = PublishEvent(found.reason, found.message, True, f"executors/{hour_of(now)}")  # no condition says it
    said = () if verdict.reason == found.reason else (event,)
    others = tuple(action for action in kept if not isinstance(action, DeleteExecutor))
    return Kept((*said, *others), found.wake_after)


def _events_to_publish(
    observation: Observation, verdict: Verdict, status: StreamingAppStatus, of_step: tuple[PublishEvent, ...]
) -> tuple[Action, ...]:
    """Return the events about the verdict and about a step of an upgrade; the same thing is said once."""
    events = _announce(observation, verdict, status)
    return of_step if any(event.reason == verdict.reason for event in of_step) else (*of_step, *events)


def _is_reported_with_upgrade(observation: Observation, verdict: Verdict, status: StreamingAppStatus) -> bool:
    """Return whether a verdict repeats what was published with an upgrade's step: something else came in between."""
    upgrade = status.upgrade
    if upgrade is None or upgrade.phase is UpgradePhase.GATE or verdict.reason != reason_of(upgrade):
        return False  # the gate is no step's: a launch leads to it
    return is_reported(upgrade, observation.app.status.upgrade)


def _announce(observation: Observation, verdict: Verdict, status: StreamingAppStatus) -> tuple[PublishEvent, ...]:
    old, new = observation.app.status.condition(Health.READY.value), status.condition(Health.READY.value)
    assert new is not None
    same = old is not None and old.reason == new.reason and observation.app.status.epoch == status.epoch
    if same or _is_reported_with_upgrade(observation, verdict, status):
        return ()
    # Since when it was otherwise, as stored: what recurs is published again, what is only decided again, later, is not.
    since = old.last_transition_time.timestamp() if old is not None else 0.0
    occasion = f"{status.epoch}/{new.status}/{since:.0f}"
    warning = verdict.warning or verdict.health is Health.STALLED
    return (PublishEvent(verdict.reason, verdict.message, warning, occasion),)
