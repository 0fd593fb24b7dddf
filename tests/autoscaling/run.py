"""Runs one rule on one trace, and all of them on all traces. No clock; the same seed gives the same run."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from tests.autoscaling.application import Application, Model
from tests.autoscaling.rules import CpuRule, DynamicAllocation, Fixed, Rule, Tidegate
from tests.autoscaling.traces import Trace
from tidegate.autoscaling.algorithm.settings import Settings

FEWEST, MOST = 1, 24
USUAL = Settings(fewest=FEWEST, most=MOST)
TICK = 5.0
"""Seconds between two looks at how old the oldest waiting row is."""


@dataclass(frozen=True)
class Result:
    """What one rule did on one trace."""

    trace: str
    rule: str
    executor_hours: float
    lag_seconds: float
    late_minutes: float
    worst_lag: float
    changes: int
    turns: int
    executors: tuple[tuple[float, int], ...]
    lags: tuple[tuple[float, float], ...]


def run(trace: Trace, rule: Rule, model: Model, seed: int, executors: int = 1) -> Result:
    """Simulate the whole trace."""
    application = Application(trace, model, seed, executors)
    seen, next_check, at = [(0.0, executors)], rule.period, 0.0
    while at < trace.seconds:
        at = min(next_check, at + TICK)
        application.run_until(at)
        if at >= next_check:
            application.scale(rule.check(application))
            next_check += rule.period
            if application.wanted != seen[-1][1]:
                seen.append((at, application.wanted))
    account = application.account
    return Result(
        trace.name,
        rule.name,
        account.executor_seconds / 3600,
        account.lag_seconds,
        account.late_seconds / 60,
        account.worst_lag,
        account.changes,
        account.turns,
        tuple(seen),
        tuple(application.lags),
    )


def enough(rate: float, model: Model, utilization: float) -> int:
    """Return how many executors somebody sets who knows how many rows arrive in a second."""
    return min(MOST, max(FEWEST, math.ceil(rate / (model.per_core * model.cores * utilization))))


def peak(trace: Trace) -> float:
    """Return the rows per second of the busiest quarter of an hour of a trace."""
    quarters = range(0, int(trace.seconds), 900)
    return max((trace.until(at + 900.0) - trace.until(at)) / 900 for at in quarters)


def rules(trace: Trace, model: Model, settings: Settings) -> tuple[Callable[[], Rule], ...]:
    """Return how to make each of the rules that are compared, all with the same bounds."""
    return (
        lambda: Tidegate(settings),
        lambda: CpuRule(FEWEST, MOST, settings.utilization),
        # Of all of the cores' time, of which batches use two thirds to four fifths: about as many executors as ours.
        lambda: CpuRule(FEWEST, MOST, 0.5),
        lambda: DynamicAllocation(FEWEST, MOST),
        lambda: Fixed(enough(peak(trace), model, settings.utilization)),
    )


def compare(
    trace: Trace,
    model: Model,
    seed: int,
    settings: Settings = USUAL,
    begins: Callable[[Trace, str, float], None] = lambda _trace, _rule, _share: None,
) -> list[Result]:
    """Return what each rule does on a trace, each beginning with as many executors as are right at its beginning.

    ``begins`` is told of each rule that is begun, with the share of them that is done.
    """
    begin, found = enough(trace.rate(0.0), model, settings.utilization), list[Result]()
    compared = [make() for make in rules(trace, model, settings)]
    for number, rule in enumerate(compared):
        begins(trace, rule.name, number / len(compared))
        found.append(run(trace, rule, model, seed, begin))
    return found
