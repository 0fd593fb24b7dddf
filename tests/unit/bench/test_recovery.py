"""Recovery's figures are ratios of medians within one mode, and its trials take turns."""

from tests.bench.recovery import DOWN, MODES, UP, Trial, results, samples
from tests.bench.turns import turns

TRIALS = [
    Trial(UP, cold=20.0, gap=22.0),
    Trial(DOWN, cold=30.0, gap=24.0),
    Trial(DOWN, cold=20.0, gap=20.0),
    Trial(UP, cold=10.0, gap=90.0),
    Trial(UP, cold=25.0, gap=10.0),
]


def test_a_ratio_is_the_median_gap_over_the_median_cold_start_of_the_same_mode() -> None:
    found = results(TRIALS)
    assert found["gap_ratio_operator_up"] == 22.0 / 20.0
    assert found["gap_ratio_operator_down"] == 22.0 / 25.0
    assert (found["gap_seconds_operator_up"], found["cold_start_seconds_operator_up"]) == (22.0, 20.0)


def test_every_sample_is_told_in_the_order_in_which_it_was_taken() -> None:
    assert samples(TRIALS)[DOWN] == [
        {"cold_start_seconds": 30.0, "gap_seconds": 24.0},
        {"cold_start_seconds": 20.0, "gap_seconds": 20.0},
    ]


def test_modes_take_turns_and_neither_is_always_first() -> None:
    assert turns(MODES, 3) == [UP, DOWN, DOWN, UP, UP, DOWN]
