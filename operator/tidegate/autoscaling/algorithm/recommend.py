"""Evaluates one application: collect, measure, evaluate, explain; the caller stores the result. Pure."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from tidegate.autoscaling.algorithm.evaluate import Evaluation, evaluate
from tidegate.autoscaling.algorithm.excluded import excluded_until
from tidegate.autoscaling.algorithm.measured import Measured, measure
from tidegate.autoscaling.algorithm.messages import explain, summarize
from tidegate.autoscaling.algorithm.past import Past
from tidegate.autoscaling.algorithm.samples import History, number_of, take_sample
from tidegate.autoscaling.algorithm.settings import Mode, Settings
from tidegate.autoscaling.algorithm.situation import Obstacle, Quota, Shortage, Situation
from tidegate_spark.contract.protocol import AgentReport


@dataclass(frozen=True, slots=True)
class Sight:
    """What there is to see."""

    now: float
    """Seconds since the epoch."""
    steady: float
    """Seconds of the monotonic clock."""
    wanted: int
    """Executors that the application is to have if nobody knows better."""
    cores: int
    """Tasks that one executor of that version runs at a time."""
    version: str
    """Which runs."""
    report: AgentReport | None = None
    """The newest of the driver process that runs."""
    taken_at: float = 0.0
    """When that was, by the monotonic clock."""
    process: str = ""
    obstacle: Obstacle | None = None
    """Why nothing is to be decided now; None: it runs."""
    upgrade_phase: str = ""
    """Of the upgrade that is the obstacle."""
    quota: Quota | None = None


@dataclass(frozen=True, slots=True)
class Advice:
    """What is recommended, and the numbers behind it, as text and as values."""

    mode: Mode
    evaluation: Evaluation
    message: str
    measured: Measured | None
    at: float
    summary: str = ""
    """The beginning of the message, without its numbers."""


def recommend(settings: Settings, history: History, past: Past, sight: Sight) -> tuple[History, Advice]:
    """Return the history with what was seen, and the advice; what is to be remembered is ``evaluation.past``.

    Args:
        settings: what a person asks for.
        history: earlier samples.
        past: what the look before left.
        sight: what there is to see.

    Raises:
        ScheduleError: no time follows from an excluded period's schedule.
    """
    report, measured = sight.report, None
    if report is None or sight.obstacle is not None:
        history = History()
    else:
        history = history.add(take_sample(report, sight.process, sight.taken_at))
        measured = measure(history, settings.window, sight.cores)
    situation = Situation(
        now=sight.now,
        steady=sight.steady,
        wanted=(number_of(report.executors_wanted) if report is not None else 0) or sight.wanted,
        cores=sight.cores,
        version=sight.version,
        asked=sight.wanted,
        measured=measured,
        obstacle=sight.obstacle,
        upgrade_phase=sight.upgrade_phase,
        excluded_until=excluded_until(settings.excluded, sight.now),
        quota=sight.quota,
        shortage=_shortage(report, sight, history) if report is not None else None,
        same_for=sight.steady - history.since if history.samples else 0.0,
    )
    evaluation = evaluate(settings, situation, past)
    message = explain(settings, situation, evaluation)
    if evaluation.due and settings.mode is Mode.ACTIVE:
        # Kept with the target: what was said of it is soon followed by what is said of something else.
        said = dataclasses.replace(evaluation.past, scaled_reason=evaluation.step.value, scaled_message=message)
        evaluation = dataclasses.replace(evaluation, past=said)
    summary = summarize(settings, situation, evaluation)
    return history, Advice(settings.mode, evaluation, message, measured, sight.now, summary)


def _shortage(report: AgentReport, sight: Sight, history: History) -> Shortage | None:
    if report.executors_running >= report.executors_wanted:
        return None
    since = report.executors_short_since
    if since <= 0 and history.samples:
        # An older runtime does not report it: then it is as old as what was seen of it. What is not observed (because
        # queries are paused, say) is not reported.
        since = sight.now - (sight.steady - history.since)
    return Shortage(report.executors_running, report.executors_leaving, since) if since > 0 else None
