"""What the bench of throughput compares, and what it makes of it. Starts no Spark."""

import os
from pathlib import Path

import pytest

from tests.bench.process_tree import thread_seconds
from tests.bench.throughput import CLOSED, OPEN, SIGNED, WAYS, Trial, results, run_trials, settings_of
from tidegate.pods.spark.settings import CLOSED_PORTS
from tidegate_spark.contract.protocol import SPARK_SECRET_SETTINGS


def trial(way: str, *batches: tuple[float, int], port_ms: float = 0.0) -> Trial:
    return Trial(way, batches, port_ms)


def test_the_closed_way_has_every_setting_of_a_launch_that_spark_takes_here() -> None:
    closed, unlocked = settings_of(CLOSED), settings_of(OPEN)
    meant = {key: value for key, value in CLOSED_PORTS.items() if key not in SPARK_SECRET_SETTINGS}
    assert meant.items() <= closed.items()
    assert {key for key in closed if closed[key] != unlocked.get(key)} == {*meant, "spark.app.name"}


def test_the_signed_way_differs_in_the_cipher_alone() -> None:
    signed, closed = settings_of(SIGNED), settings_of(CLOSED)
    differing = {key for key in signed if signed[key] != closed.get(key)}
    assert (differing, closed.keys() - signed.keys()) == ({"spark.network.crypto.cipher", "spark.app.name"}, set())


def test_a_ratio_is_the_median_of_those_of_trials_beside_each_other() -> None:
    slow_minute = [trial(OPEN, (4.0, 100)), trial(CLOSED, (5.0, 100)), trial(SIGNED, (4.0, 100))]
    fast_minutes = [trial(OPEN, (2.0, 100)), trial(CLOSED, (2.5, 100)), trial(SIGNED, (2.0, 100))] * 2
    found = results([*slow_minute, *fast_minutes])
    assert found["throughput_ratio_closed"] == pytest.approx(0.8)
    assert found["throughput_ratio_signed"] == 1.0
    assert (found["rows_per_second_open"], found["rows_per_second_closed"]) == (50.0, 40.0)
    assert found["batch_ms_open"] == 2000.0
    assert found["batch_cost_ms"] == pytest.approx(500.0)


def test_a_slow_batch_counts_by_its_rows() -> None:
    assert trial(OPEN, (1.0, 100), (3.0, 100)).rows_per_second == 50.0


def test_a_ratio_comes_with_the_interval_of_the_true_one() -> None:
    closed = [trial(CLOSED, (seconds, 100)) for seconds in (1.0, 1.25, 2.0)]
    others = [trial(way, (1.0, 100)) for way in (OPEN, SIGNED)] * 3
    found = results([*closed, *others])
    low, middle, high = (found[f"throughput_ratio_closed{part}"] for part in ("_low", "", "_high"))
    assert (low, middle, high) == (0.5, 0.8, 1.0)


def test_what_the_ports_take_is_the_median_of_the_trials() -> None:
    open_, closed = ([trial(way, (1.0, 100), port_ms=ms) for ms in (30.0, 20.0, 90.0)] for way in (OPEN, CLOSED))
    found = results([*open_, *closed, *[trial(SIGNED, (1.0, 100), port_ms=7.0)] * 3])
    assert (found["port_ms_open"], found["port_ms_closed"], found["port_ms_signed"]) == (30.0, 30.0, 7.0)


class OneStream:
    """A stream that counts how often it worked, each time with more time for its ports."""

    def __init__(self) -> None:
        self.worked = 0

    def work_off(self) -> list[tuple[float, int]]:
        self.worked += 1
        return [(1.0, 100), (1.0, 100)]

    def port_seconds(self) -> float:
        return 0.3 * self.worked


def test_trials_that_warm_up_do_not_count() -> None:
    streams = {way: OneStream() for way in WAYS}
    found = run_trials(streams, number=2, warm=3)
    assert [stream.worked for stream in streams.values()] == [5, 5, 5]
    assert sorted(each.way for each in found) == sorted(WAYS * 2)
    assert {round(each.port_ms) for each in found} == {100}, "of three batches, the one that compiles included"


def test_cpu_time_is_that_of_threads_whose_names_begin_so() -> None:
    mine = Path("/proc/self/comm").read_text().strip()
    assert thread_seconds(os.getpid(), ("no such thread", mine[:3])) > 0
    assert thread_seconds(os.getpid(), ("no such thread",)) == 0
