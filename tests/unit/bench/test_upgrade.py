"""An upgrade's figure is a ratio of medians, and a gap ends with the new driver's first batch."""

import json

from tests.bench.turns import turns
from tests.bench.upgrade import BY_HAND, MODES, UPGRADE, Trial, gap_at, of_the_next_epoch, results, samples
from tidegate.app.builders.driver import build_driver_pod
from tidegate_spark.contract.protocol import CONFIG_VARIABLE
from tidegate_testing.commit_log import Batch
from tidegate_testing.observations import PLATFORM, app_with

TRIALS = [Trial(UPGRADE, 22.0), Trial(BY_HAND, 20.0), Trial(BY_HAND, 90.0), Trial(UPGRADE, 11.0), Trial(BY_HAND, 10.0)]


def test_the_ratio_is_that_of_the_median_gaps() -> None:
    assert results(TRIALS) == {"gap_ratio": 16.5 / 20.0, "gap_seconds_upgrade": 16.5, "gap_seconds_by_hand": 20.0}


def test_every_sample_is_told_in_the_order_in_which_it_was_taken() -> None:
    assert samples(TRIALS) == {UPGRADE: [22.0, 11.0], BY_HAND: [20.0, 90.0, 10.0]}


def test_modes_take_turns_and_neither_is_always_first() -> None:
    assert turns(MODES, 3) == [UPGRADE, BY_HAND, BY_HAND, UPGRADE, UPGRADE, BY_HAND]


def test_a_gap_is_from_the_last_batch_of_the_old_driver_to_the_first_of_the_new() -> None:
    # One batch took long before the old driver stopped; that is not the gap.
    commits = [Batch(number, time) for number, time in enumerate((1.0, 2.0, 90.0, 91.0, 120.0, 121.0))]
    assert gap_at(commits, 100.0) == 29.0
    assert gap_at(commits[:4], 100.0) == 0
    assert gap_at(commits[4:], 100.0) == 0


def test_a_pod_made_anew_by_hand_has_the_next_epoch_so_that_the_fence_lets_it_in() -> None:
    pod = build_driver_pod(app_with(), 3, 1, PLATFORM)
    configs = [
        json.loads(
            next(item["value"] for item in body["spec"]["containers"][0]["env"] if item["name"] == CONFIG_VARIABLE)
        )
        for body in (pod, of_the_next_epoch(pod))
    ]
    assert [config["epoch"] for config in configs] == [3, 4]
    assert configs[1] == {**configs[0], "epoch": 4}
