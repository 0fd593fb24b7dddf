"""The steps of an upgrade, as one table that reads from top to bottom, and what a launch makes of the record. No I/O.

Each look takes at most one step. It is written to the status before anything is done about it, so whoever comes after
a crash finds what was meant.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from tidegate.decide.upgrades import (
    adoption,
    copying,
    gate,
    invalid_spec,
    messages,
    rehearsal,
    repartition,
    rollback,
    start_upgrade,
)
from tidegate.decide.upgrades.record import Step, applied
from tidegate.model.streaming_app import UpgradePhase, UpgradeStatus
from tidegate.observe.observation import Observation
from tidegate.observe.pods import time_from_seconds
from tidegate_spark.reasons import Reason

Rule: TypeAlias = Callable[[Observation, float], Step | None]

STEPS: tuple[Rule, ...] = (
    adoption.adopt_running_driver,
    start_upgrade.restart_stable,
    rollback.roll_back_on_request,
    rollback.roll_back_on_revert,
    start_upgrade.withdraw,
    start_upgrade.replace_version_under_test,
    start_upgrade.begin,
    start_upgrade.note_other_refusal,
    adoption.begin_test_of_running_version,
    invalid_spec.continue_stable,
    invalid_spec.refuse_before_the_stop,
    invalid_spec.note_work,
    copying.follow_copy,
    rehearsal.follow_rehearsal,
    repartition.begin_repartition,
    repartition.follow_repartition,
    repartition.note_repartition_pod,
    gate.pass_gate,
    gate.fail_gate,
    gate.roll_back_unharmed,
    gate.note_idle,
    gate.note_input,
    gate.note_refusal,
    rollback.finish_rollback,
    gate.note_rollback_snapshot,
    rehearsal.release_copy,
    rollback.note_ignored_rollback_to,
    gate.forget_disposed,
    gate.learn_stable,
)
"""The first that applies is taken. What is comes before what people want, and that before what the application does."""


def next_step(o: Observation, now: float) -> Step | None:
    """Return the next step of the application's upgrade, None if there is none to be taken now."""
    return next((step for step in (rule(o, now) for rule in STEPS) if step is not None), None)


def with_step(o: Observation, step: Step | None) -> Observation:
    """Return the observation as all that follows from the step is to see it."""
    if step is None:
        return o
    app = msgspec.structs.replace(o.app, status=applied(o.app.status, step))
    return dataclasses.replace(o, app=app)


def at_launch(upgrade: UpgradeStatus | None, epoch: int, now: float) -> UpgradeStatus | None:
    """Return the record as it is from the launch of ``epoch`` on."""
    if upgrade is None:
        return None
    since = time_from_seconds(now)
    if upgrade.phase is UpgradePhase.STOPPING:
        first = upgrade.epoch or epoch
        return msgspec.structs.replace(
            upgrade,
            phase=UpgradePhase.GATE,
            epoch=first,
            phase_start_time=since,
            reason=Reason.LAUNCHED,
            message=messages.STARTED,
        )
    if upgrade.phase is UpgradePhase.GATE:
        return msgspec.structs.replace(upgrade, phase_start_time=since)
    if upgrade.phase is UpgradePhase.ROLLING_BACK and not upgrade.epoch:
        return msgspec.structs.replace(upgrade, epoch=epoch)
    return upgrade
