"""Messages about an evaluation: its numbers, and what can be done. No I/O."""

from __future__ import annotations

import datetime
import math

from tidegate.autoscaling.algorithm.bounds import LIMITS, partitions_ceiling, state_ceiling
from tidegate.autoscaling.algorithm.effect import held_seconds
from tidegate.autoscaling.algorithm.evaluate import Evaluation, enough_executors, usable_share
from tidegate.autoscaling.algorithm.large_batches import usable_rate
from tidegate.autoscaling.algorithm.measured import Measured, settled_after
from tidegate.autoscaling.algorithm.quota_messages import quota_message
from tidegate.autoscaling.algorithm.settings import Settings
from tidegate.autoscaling.algorithm.situation import Obstacle, Situation
from tidegate_spark.contract.reasons import Reason

_MORE = (Reason.SCALE_UP, Reason.SCALE_UP_SOON, *LIMITS)
_FEWER = (Reason.SCALE_DOWN, Reason.SCALE_DOWN_SOON, Reason.STEADY)
_CAUSES = "A hot key, the driver's part of a batch or a slow sink may be what takes the time."
_OBSTACLES = {
    Obstacle.SUSPENDED: "the application is suspended",
    Obstacle.NO_REPORT: "there is no driver that answers",
    Obstacle.NOT_READY: "its queries do not run yet",
    Obstacle.PAUSED: "its queries are paused",
    Obstacle.CONTINUOUS: "a query has a continuous trigger, of which Spark reports no rows and no rates",
    Obstacle.REAL_TIME: "a query is in real-time mode, in which tasks hold their cores for the whole batch",
    Obstacle.REPARTITIONING: "the state is being repartitioned, which comes first",
}
_UNKNOWN = (Reason.RATE_UNKNOWN, Reason.ROWS_UNKNOWN)
_UNDECIDED = (Reason.NOT_RUNNING, Reason.UPGRADE_UNDER_WAY, Reason.CONTINUOUS_TRIGGER, Reason.REAL_TIME_TRIGGER)


def summarize(settings: Settings, situation: Situation, result: Evaluation) -> str:
    """Return what is, without numbers: the same text for as long as it is so."""
    return _what(settings, situation, result)


def explain(settings: Settings, situation: Situation, result: Evaluation) -> str:
    """Return one or two sentences: what is, why, and what would change it."""
    what = _what(settings, situation, result)
    metrics = _metrics(settings, situation, result)
    missing = "" if result.step is Reason.EXECUTORS_MISSING else _missing(situation)
    parts = (what, metrics, _given_back(situation, result), _ceiling(situation, result), missing)
    return " ".join(part for part in parts if part)


def _what(settings: Settings, situation: Situation, result: Evaluation) -> str:  # noqa: PLR0911 - one arm each
    now, then, wait = result.current, result.recommended, _seconds(result.wait)
    match result.step:
        case Reason.STEADY:
            return f"{_executors(now)} {'is' if now == 1 else 'are'} right."
        case Reason.SCALE_UP | Reason.SCALE_DOWN:
            return f"{_executors(then)} instead of {now}."
        case Reason.SCALE_UP_SOON:
            return f"{_executors(then)} instead of {now}, if that many are needed for {wait} more."
        case Reason.SCALE_DOWN_SOON:
            return f"{_executors(then)} instead of {now}, if no more are needed for {wait}."
        case Reason.OUT_OF_BOUNDS:
            return f"{_executors(then)} instead of {now}: from {settings.fewest} to {settings.most} are allowed."
        case Reason.EXCLUDED_PERIOD:
            until = _time(situation.excluded_until)
            return f"{_executors(then)} would do instead of {now}; an excluded period lasts until {until}."
        case Reason.MEASURING:
            return f"The number stays at {now} until enough batches are measured."
        case Reason.RATE_UNKNOWN | Reason.ROWS_UNKNOWN:
            return f"The number stays at {now}: {_unknown(situation)}."
        case step if step in _UNDECIDED:
            return f"No decision: {_obstacle(situation.obstacle, situation.upgrade_phase)}."
        case _:
            return _limited(settings, situation, result)


def _unknown(situation: Situation) -> str:
    m = situation.measured
    if m is None or not m.uncounted:
        return "the driver does not report how busy executors are"
    return f"executors work {m.utilization:.0%} of their time, and Spark reports no rows of the sources"


def _obstacle(obstacle: Obstacle | None, upgrade_phase: str) -> str:
    if obstacle is None or obstacle is Obstacle.UPGRADING:
        return f"an upgrade is under way (phase {upgrade_phase}), which comes first"
    return _OBSTACLES[obstacle]


def _limited(settings: Settings, situation: Situation, result: Evaluation) -> str:  # noqa: PLR0911 - one arm each
    more = f"More than {_executors(result.current)} would be needed"
    match result.step:
        case Reason.AT_MAXIMUM:
            return f"{more}; spec.autoscaling.maxExecutors is {settings.most}."
        case Reason.PARTITIONS_CEILING:
            has = "has" if result.current == 1 else "have"
            return f"{_executors(result.current)} already {has} a core for every task; more would be idle."
        case Reason.EXECUTORS_IDLE:
            idle = situation.measured.idle_executors if situation.measured is not None else 0
            has = "has" if idle == 1 else "have"
            return (
                f"More would be needed, but {idle} of {_executors(result.current)} {has} had no task for a while: a "
                "stage has too few tasks at a time."
            )
        case Reason.BATCHES_LIMITED:
            return (
                f"More than {_executors(result.current)} would not help: input waits{_waiting(situation)}. Let batches "
                "take more (maxOffsetsPerTrigger, maxFilesPerTrigger), or begin sooner (the trigger's interval)."
            )
        case Reason.QUOTA_REACHED:
            quota = situation.quota
            return f"{more}; {quota_message(quota) if quota is not None else 'a ResourceQuota has no room'}."
        case Reason.EXECUTORS_MISSING:
            if situation.measured is None:
                return f"{_missing(situation)} {_unmeasured(settings, situation)}"
            return f"{more}, but only {situation.measured.executors} of the {situation.wanted} that are wanted run."
        case _:
            return f"{more}, but {_in_vain(situation, result)}. {_CAUSES}"


def _metrics(settings: Settings, situation: Situation, result: Evaluation) -> str:
    m = situation.measured
    if m is None or result.bounds is None or result.step in (*_UNKNOWN, Reason.MEASURING):
        return ""
    if not m.rate:
        return "No input arrives."
    text = (
        f"{_number(m.arriving)} rows/s arrive; an executor can process {_rate(m, result)}, and is to be used for "
        f"{settings.utilization:.0%} of that"
    )
    if m.backlog >= 0.5:
        text += f"; {_number(m.backlog)} rows of backlog are to be processed within {_seconds(settings.catch_up)}"
    text += f": {result.needed:.1f} are needed"
    if result.step in _MORE and _differ(result.soon, result.needed):
        text += f", and {result.soon:.1f} for the {_number(m.arriving_lately)} rows/s that arrived lately"
    return f"{text}{_highest(settings, situation, result)}."


def _rate(m: Measured, result: Evaluation) -> str:
    """Return what an executor can do; where that is not what it does now, also what it does, and in which batches."""
    share, rate = usable_share(result.past, result.needed), usable_rate(result.past.large, m)
    now, usable = _number(m.rate * share), _number(rate * share)
    if rate <= m.rate:
        return usable
    rows = f"in the present ones of {_number(m.rows_per_batch)} rows, {now}"
    return f"{usable} in batches of {_number(result.past.large.rows)} rows ({rows})"


def _waiting(situation: Situation) -> str:
    m = situation.measured
    if m is None:
        return ""
    return f" ({_number(max(0, m.lag_rows))} rows) while batches take {m.busy:.0%} of the time"


def _highest(settings: Settings, situation: Situation, result: Evaluation) -> str:
    """Return the need by which it is decided how many fewer are enough, if it is not the one of now."""
    past = result.past
    if result.step not in _FEWER or not past.peaks:
        return ""
    peak, since = past.peaks[0][1], past.peaks_since
    text = ""
    if _differ(peak, result.needed):
        lately = _seconds(
            min(settings.down_interval, situation.steady - since) if since > 0 else settings.down_interval
        )
        text = f"; up to {peak:.1f} were needed in the last {lately}"
    if result.step is Reason.STEADY or result.bounds is None:
        return text
    if result.recommended > enough_executors(past, result.current, result.bounds):
        # A share of them that is less than one is one all the same.
        least = "" if result.current * settings.down_share >= 1 else ", but always one"
        text += f"; one step removes at most {settings.down_share:.0%} of the executors{least}"
    return text


def _differ(more: float, need: float) -> bool:
    return f"{more:.1f}" != f"{need:.1f}" and more > need


def _in_vain(situation: Situation, result: Evaluation) -> str:
    m = situation.measured
    if m is None or (result.bounds is not None and result.bounds.high <= result.current):
        return f"the last ones that were added hardly helped{_brought(situation, result)}"
    return f"they would hardly help: executors work for {m.at_work:.0%} of a batch's time, and wait for the rest"


def _brought(situation: Situation, result: Evaluation) -> str:
    past = result.past
    if not past.held_from:
        return ""
    expected = past.held_before * past.held / past.held_from
    again = _seconds(past.held_at + held_seconds(past) - situation.now)
    rows = "rows for each second of a batch" if past.held_arriving else "rows/s"
    return (
        f": {_executors(past.held_from)} processed {_number(past.held_before)} {rows}, and {past.held} process "
        f"{_number(past.held_after)}, where {_number(expected)} were expected. More are tried again in {again}"
    )


def _given_back(situation: Situation, result: Evaluation) -> str:
    """Return why there are to be fewer than are needed, empty if there are not."""
    held = result.bounds is not None and result.bounds.limit is Reason.INEFFECTIVE_SCALING
    if (
        not held
        or result.step not in (Reason.SCALE_DOWN, Reason.SCALE_DOWN_SOON)
        or result.needed <= result.recommended
    ):
        return ""
    return f"More hardly helped{_brought(situation, result)}. {_CAUSES}"


def _ceiling(situation: Situation, result: Evaluation) -> str:
    m = situation.measured
    if m is None or result.step in (*_UNDECIDED, *_UNKNOWN):
        return ""
    of_state = state_ceiling(m, situation.cores)
    of_all = partitions_ceiling(m, situation.cores, result.past.tasks_at_once)
    by_partitions = result.bounds is not None and result.bounds.limit is Reason.PARTITIONS_CEILING
    of_no_use = result.step is Reason.INEFFECTIVE_SCALING and result.current >= min(
        of_state or math.inf, of_all or math.inf
    )
    reached = result.step in (Reason.PARTITIONS_CEILING, Reason.EXECUTORS_IDLE) or of_no_use
    if not reached and not (by_partitions and result.needed > result.recommended):
        return _beyond_state(m, result, of_state)
    tasks = f"{_executors(of_all)} with {_tasks(situation.cores)} each at a time" if of_all else ""
    parts = [f"The sources have {_partitions(m.source_partitions)}"] if m.source_partitions >= 0 else []
    if of_state is not None:
        of_it = f"the state has {_partitions(m.state_partitions)}"
        parts.append(of_it if parts else of_it[0].upper() + of_it[1:])
    if not parts:
        return ""
    busy = f": enough for {tasks}" if tasks else ""
    advice = "Give the source more partitions."
    if of_state is not None:
        advice = (
            "Raise spec.state.partitions, which stops the application while its state is repartitioned. Or give the "
            "source more partitions."
        )
    return f"{' and '.join(parts)}{busy}. {advice}"


def _beyond_state(m: Measured, result: Evaluation, of_state: int | None) -> str:
    if of_state is None or max(result.recommended, result.current) <= of_state:
        return ""
    return (
        f"Beyond {_executors(of_state)} only reading gets faster: the state has {_partitions(m.state_partitions)} "
        "(spec.state.partitions)."
    )


def _missing(situation: Situation) -> str:
    """Return since when executors have been missing, empty if none are, or have not been for long."""
    short = situation.lasting_shortage
    if short is None:
        return ""
    since = _time(short.since)
    if not short.running:
        there = f"No executor runs ({situation.wanted} wanted); there have been too few since {since}."
    else:
        run = f"{_executors(short.running)} {'runs' if short.running == 1 else 'run'}"
        there = f"Only {run} ({situation.wanted} wanted); there have been too few since {since}."
    gone = f" {_executors(short.leaving)} must end first." if short.leaving else ""
    return f"{there}{gone} The condition Ready says why."


def _unmeasured(settings: Settings, situation: Situation) -> str:
    """Return what has to be before anything can be measured."""
    short = situation.shortage
    if short is None or not short.running:
        return "Nothing can be measured without executors."
    return f"Measuring starts when their number has stayed the same for {_seconds(settled_after(settings.window))}."


def _executors(number: int | None) -> str:
    return "1 executor" if number == 1 else f"{number} executors"


def _tasks(number: int) -> str:
    return "1 task" if number == 1 else f"{number} tasks"


def _partitions(number: int) -> str:
    return "1 partition" if number == 1 else f"{number} partitions"


def _time(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(int(seconds), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _seconds(seconds: float | None) -> str:
    seconds = max(0.0, seconds or 0.0)
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
