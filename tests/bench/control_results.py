"""The figures of the control stream's benchmark, from what was measured. Pure."""

import dataclasses
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.bench.intervals import median, percentile

WITH, WITHOUT = "with", "without"
KINDS = (WITH, WITHOUT)
LONG, SHORT = "long", "short"
LOGS = (LONG, SHORT)
STORAGE, KAFKA = "storage", "kafka"
CHANNELS = (STORAGE, KAFKA)
PROMPT_SECONDS = 5.0
"""After the end of a burst: by then all of it is to be in force."""
LEAST_RATE = 0.95
"""Of the rate that was asked for: a burst that was sent more slowly shows nothing."""


@dataclass(frozen=True)
class Window:
    """Some batches of one kind, back to back."""

    kind: str
    seconds: float
    """From the commit before the first to that of the last."""
    batches: int
    first: int = 0
    """The number of the first one."""

    @property
    def batch_seconds(self) -> float:
        """What one batch took."""
        return self.seconds / self.batches


@dataclass(frozen=True)
class Use:
    """What one task found in force when it asked first."""

    time: float
    """Seconds since the epoch."""
    batch: int
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class InForce:
    """When a message came into force, and in which batch."""

    time: float
    batch: int


@dataclass(frozen=True)
class Latency:
    """One message's, in seconds."""

    channel: str
    used: float
    """From its publication until the last task of the first batch with it had asked."""
    committed: float
    """Until that batch was committed."""


@dataclass(frozen=True)
class Burst:
    """What came of many messages that were sent at once."""

    channel: str
    sent: int
    rate: float
    """Messages in a second, as they were sent."""
    rate_wanted: float
    logged: int
    lag: float
    """From the last one's publication until it was in force in every task, seconds; the limit if it never was."""

    @property
    def kept_up(self) -> bool:
        """Whether all of it was sent in time, is in the log once, and was in force soon after its end."""
        in_time = self.rate >= LEAST_RATE * self.rate_wanted
        return in_time and self.logged == self.sent and self.lag <= PROMPT_SECONDS


# --- throughput, long logs ---


def ratios(windows: Sequence[Window], over: str, under: str) -> list[float]:
    """Return the batch time of kind ``over`` by that of ``under``, for each pair in the order in which they were."""
    pairs = zip(*([w.batch_seconds for w in windows if w.kind == kind] for kind in (over, under)), strict=True)
    return [one / other for one, other in pairs]


def throughput(windows: Sequence[Window], rows: int) -> dict[str, float]:
    """Return how many rows go through with control messages, by how many do without."""
    found = median(ratios(windows, WITHOUT, WITH))
    rates = {kind: median([rows / w.batch_seconds for w in windows if w.kind == kind]).value for kind in KINDS}
    return {
        "throughput_ratio": found.value,
        "throughput_ratio_low": found.low,
        "throughput_ratio_high": found.high,
        **{f"rows_per_second_{kind}": rate for kind, rate in rates.items()},
    }


def long_log(windows: Sequence[Window]) -> dict[str, float]:
    """Return how long a batch takes with many messages in the log, by how long with few."""
    found = median(ratios(windows, LONG, SHORT))
    times = {kind: median([w.batch_seconds for w in windows if w.kind == kind]).value for kind in LOGS}
    return {
        "long_log_slowdown": found.value,
        "long_log_slowdown_low": found.low,
        "long_log_slowdown_high": found.high,
        **{f"batch_seconds_{kind}_log": time for kind, time in times.items()},
    }


# --- latency ---


def moments(number: int, seconds: float, seed: int) -> list[float]:
    """Return so many moments of a time that begins at 0, in order: each falls anywhere within a trigger's interval."""
    draw = random.Random(seed)
    return sorted(draw.uniform(0, seconds) for _ in range(number))


def uses_in(lines: Iterable[str]) -> list[Use]:
    """Return what tasks wrote down; a last line may be half there."""
    found = []
    for line in lines:
        try:
            found.append(Use(**json.loads(line)))
        except ValueError:
            continue
    return found


def in_force(uses: Iterable[Use], key: str, last: int) -> dict[int, InForce]:
    """Return message -> when it was in force in all tasks of a batch, of those up to ``last`` that were.

    Messages are numbered from 1 and set ``key`` to their number, so that the setting says how far the log is in force.
    """
    batches: dict[int, tuple[float, int]] = {}
    for use in uses:
        time, _ = batches.get(use.batch, (0.0, 0))
        batches[use.batch] = max(time, use.time), int(use.settings.get(key, 0))
    found: dict[int, InForce] = {}
    seen = 0
    for batch, (time, number) in sorted(batches.items()):
        found |= {each: InForce(time, batch) for each in range(seen + 1, min(number, last) + 1)}
        seen = max(seen, number)
    return found


def latencies(
    channel: str, sent: Mapping[int, float], found: Mapping[int, InForce], commits: Mapping[int, float]
) -> list[Latency]:
    """Return the latency of each message.

    Args:
        channel: by which they came.
        sent: message -> when it was published.
        found: message -> when it was in force.
        commits: batch -> when it was committed.

    Raises:
        KeyError: one was not in force, or its batch was not committed.
    """
    return [
        Latency(channel, found[number].time - time, commits[found[number].batch] - time)
        for number, time in sorted(sent.items())
    ]


def latency(found: Sequence[Latency], interval: float, batch_seconds: float) -> dict[str, float]:
    """Return percentiles in intervals of the trigger; the storage channel's have no name of a channel."""
    results = {"latency_batch_intervals": batch_seconds / interval}
    for channel in CHANNELS:
        used = [each.used / interval for each in found if each.channel == channel]
        committed = [each.committed / interval for each in found if each.channel == channel]
        name = "" if channel == STORAGE else f"_{channel}"
        results[f"latency_p50_intervals{name}"] = percentile(used, 50)
        results[f"latency_p99_intervals{name}"] = percentile(used, 99)
        results[f"latency_p99_intervals_committed{name}"] = percentile(committed, 99)
    return results


# --- bursts ---


def bursts(found: Sequence[Burst]) -> dict[str, float]:
    """Return whether all bursts were kept up with, and how far behind it was at the end of each."""
    lags = {f"burst_lag_seconds_{burst.channel}": burst.lag for burst in found}
    return {"burst_kept_up": float(all(burst.kept_up for burst in found)), **lags}


def samples(found: Iterable[Any]) -> list[dict[str, Any]]:
    """Return measurements as JSON has them."""
    return [
        {
            name: round(value, 3) if isinstance(value, float) else value
            for name, value in dataclasses.asdict(each).items()
        }
        for each in found
    ]
