"""A process that is lost while it runs schedules takes nothing with it but what it was doing, and that is named."""

from tests.scenario.deadly_work import DEADLY, die_of_one
from tests.scenario.workers import BLOCK, Lost, run_all


def test_a_lost_process_names_its_seeds_and_the_others_are_run() -> None:
    seeds = range(8 * BLOCK)
    news = list(run_all(seeds, 2, die_of_one))
    lost = [each for each in news if isinstance(each, Lost)]
    done = {result.seed for each in news if not isinstance(each, Lost) for result in each}
    named = {seed for each in lost for block in each.blocks for seed in block}
    assert DEADLY in named
    assert done | named == set(seeds)
    assert not done & named
    assert f"{2 * BLOCK} to {3 * BLOCK - 1}" in str(lost[0])
