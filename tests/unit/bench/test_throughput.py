"""What the bench of throughput compares, and what it makes of it. Starts no Spark."""

import pytest

from tests.bench.throughput import CLOSED, OPEN, SIGNED, Trial, results, settings_of
from tidegate.pods.spark.settings import CLOSED_PORTS
from tidegate_spark.contract.protocol import SPARK_SECRET_SETTINGS


def trial(way: str, *batches: tuple[float, int]) -> Trial:
    return Trial(way, batches)


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
