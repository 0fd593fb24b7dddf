"""How a driver comes to the number of executors that is wanted: who goes, when, and what is counted. No JVM."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from tidegate_spark.executors.executor_back_off import HEALTHY_SECONDS, LONGEST_PAUSE, SETTLED_SECONDS, pause_after
from tidegate_spark.executors.executors import SURPLUS_SECONDS, Count, Scale
from tidegate_spark.executors.living_executors import LivingExecutors


@dataclass
class Backend:
    """Spark's scheduler: executors come when a test says so; those that are released have tasks until it ends them."""

    ids: list[str] = field(default_factory=list)
    target: int = 0
    released: list[str] = field(default_factory=list)

    def registered(self) -> Sequence[str]:
        return list(self.ids)

    def request(self, wanted: int) -> None:
        self.target = wanted

    def release(self, ids: Sequence[str]) -> None:
        assert self.target < len(self.ids), "Spark would replace who goes"
        self.released += ids

    def end(self, *ids: str) -> None:
        self.ids = [each for each in self.ids if each not in ids]


def count(scale: Scale, wanted: int | None, now: float) -> tuple[int, int]:
    """Return how many run and how many go."""
    found = scale.check(wanted, now)
    return found.running, found.leaving


def test_nothing_is_asked_of_spark_before_anybody_wants_another_number() -> None:
    backend = Backend(["1", "2"])
    assert Scale(backend).check(None, 0.0) == Count(2, 0)
    assert (backend.target, backend.released) == (0, [])


def test_of_too_many_the_youngest_go_and_do_not_count_as_running_while_their_tasks_end() -> None:
    backend = Backend(["9", "10", "2"])
    scale = Scale(backend)
    assert count(scale, 1, 0.0) == (1, 2)
    assert (backend.target, backend.released) == (1, ["9", "10"])
    assert count(scale, 1, 1.0) == (1, 2)
    backend.end("10")
    assert count(scale, 1, 2.0) == (1, 1)
    backend.end("9")
    assert count(scale, 1, 3.0) == (1, 0)
    assert backend.released == ["9", "10"], "nobody is released twice"


def test_executors_that_go_are_no_part_of_those_that_are_wanted_again() -> None:
    backend = Backend(["1", "2", "3"])
    scale = Scale(backend)
    scale.check(1, 0.0)
    assert count(scale, 2, 1.0) == (1, 2)
    assert backend.target == 2
    backend.end("2", "3")
    backend.ids.append("4")
    assert count(scale, 2, 2.0) == (2, 0)
    assert backend.released == ["2", "3"]


def test_an_executor_that_was_on_its_way_when_fewer_were_wanted_goes_after_a_while() -> None:
    backend = Backend(["1"])
    scale = Scale(backend)
    scale.check(2, 0.0)
    scale.check(1, 5.0)
    backend.ids.append("2")
    assert count(scale, 1, 6.0) == (2, 0)
    assert count(scale, 1, 6.0 + SURPLUS_SECONDS) == (1, 1)
    assert backend.released == ["2"]


def test_one_that_was_made_in_the_place_of_a_lost_one_stays() -> None:
    backend = Backend(["1", "2"])
    scale = Scale(backend)
    scale.check(2, 0.0)
    backend.ids.append("3")
    scale.check(2, 1.0)
    backend.end("1")
    scale.check(2, 2.0)
    backend.ids.append("4")
    scale.check(2, SURPLUS_SECONDS)
    assert count(scale, 2, SURPLUS_SECONDS + 1.5) == (3, 0), "the while begins again with each surplus"
    assert backend.released == []


def test_of_those_that_go_it_is_known_which_has_been_at_it_for_longest() -> None:
    backend = Backend(["1", "2", "3", "4"])
    scale = Scale(backend)
    assert scale.check(3, 5.0) == Count(3, 1, "4", 5.0)
    assert scale.check(1, 20.0) == Count(1, 3, "4", 5.0)
    backend.end("4")
    assert scale.check(1, 30.0) == Count(1, 2, "2", 20.0)
    backend.end("2", "3")
    assert scale.check(1, 40.0) == Count(1, 0, "", 0.0)


# --- executors that end ----------------------------------------------------------------------------------------------


@dataclass
class Spark:
    """Spark's scheduler and allocator, with executors that end when a test says so; time passes in steps of a second.

    A second after one has ended another one is made, as long as there are fewer than its target.
    """

    target: int
    life: float = 1e9
    """Seconds after which an executor ends."""
    born: dict[int, float] = field(default_factory=dict)
    made: int = 0
    now: float = 0.0

    def registered(self) -> Sequence[str]:
        return [str(number) for number, since in self.born.items() if self.now - since >= 3.0]

    def request(self, wanted: int) -> None:
        self.target = wanted

    def release(self, ids: Sequence[str]) -> None:
        for each in ids:
            self.born.pop(int(each), None)

    def check(self, now: float) -> frozenset[int]:
        return frozenset(self.born)

    def hurry(self) -> None: ...

    def passes(self) -> None:
        self.now += 1.0
        self.born = {number: since for number, since in self.born.items() if self.now - since < self.life}
        while len(self.born) < self.target:
            self.made += 1
            self.born[self.made] = self.now


def run(scale: Scale, spark: Spark, seconds: float, wanted: int | None = None) -> Count:
    """Return the last count after so many seconds, each with a look."""
    found = scale.check(wanted, spark.now)
    for _ in range(int(seconds)):
        spark.passes()
        found = scale.check(wanted, spark.now)
    return found


@pytest.mark.parametrize("life", [1.0, 5.0, 30.0])
@pytest.mark.parametrize("wanted", [1, 8])
def test_of_executors_that_end_at_once_few_are_made_in_an_hour(life: float, wanted: int) -> None:
    spark = Spark(wanted, life)
    found = run(Scale(spark, spark, wanted), spark, 3600)
    # Pauses of 0, 10, 20 … 300 s: 16 rounds, and what Spark makes within a look of an end.
    assert spark.made <= 2 * 16 * wanted
    assert found.ended >= spark.made - wanted


def test_the_first_that_is_lost_is_replaced_at_once() -> None:
    spark = Spark(3)
    scale = Scale(spark, spark, 3)
    run(scale, spark, 20)
    del spark.born[2]
    assert run(scale, spark, 5).running == 3
    assert (spark.made, run(scale, spark, 1).ended) == (4, 1)


def test_attempts_go_on_and_all_run_again_once_the_cause_is_gone() -> None:
    spark = Spark(4, life=2.0)
    scale = Scale(spark, spark, 4)
    run(scale, spark, 1800)
    spark.life = 1e9
    assert run(scale, spark, LONGEST_PAUSE + 10).running == 4
    assert spark.target == 4


def test_who_has_lived_for_long_begins_the_count_again() -> None:
    spark = Spark(2, life=2.0)
    scale = Scale(spark, spark, 2)
    run(scale, spark, 1800)
    spark.life = 1e9
    run(scale, spark, LONGEST_PAUSE + HEALTHY_SECONDS + 10)
    made = spark.made
    spark.born.popitem()
    run(scale, spark, 3)
    assert spark.made == made + 1


def test_those_that_have_lived_stay_wanted_beside_one_that_does_not() -> None:
    spark = Spark(4)
    scale = Scale(spark, spark, 4)
    run(scale, spark, SETTLED_SECONDS + 5)
    kept = {1, 2, 3}
    for _ in range(600):
        spark.born = {number: since for number, since in spark.born.items() if number in kept}
        run(scale, spark, 1)
        assert spark.target >= 3
    assert spark.made < 20


def test_a_step_down_is_no_end_and_needs_no_pause() -> None:
    spark = Spark(5)
    scale = Scale(spark, spark, 5)
    run(scale, spark, 20)
    found = run(scale, spark, 20, wanted=2)
    assert (found.ended, found.held_until, spark.target) == (0, 0.0, 2)
    assert run(scale, spark, 20, wanted=6).running == 6


def test_another_number_that_is_wanted_during_a_pause_waits_for_its_end() -> None:
    spark = Spark(2, life=1.0)
    scale = Scale(spark, spark, 2)
    run(scale, spark, 600)
    made = spark.made
    run(scale, spark, 30, wanted=6)
    assert spark.made - made <= 6
    spark.life = 1e9
    assert run(scale, spark, LONGEST_PAUSE + 10, wanted=6).running == 6


def test_one_in_the_place_of_a_lost_one_has_not_ended_though_it_was_not_there_at_the_last_look_at_pods() -> None:
    spark = Spark(2)
    living = LivingExecutors(lambda: frozenset(spark.born), lambda ask: ask())
    scale = Scale(spark, living, 2)
    spark.passes()  # so that an answer comes with the second in which all run
    run(scale, spark, 300)
    # Its node is lost: its pod is gone and has been replaced, while Spark waits for a heartbeat for two minutes.
    registered = spark.registered
    spark.registered = lambda: sorted({*registered(), "1"})  # type: ignore[method-assign]
    del spark.born[1]
    run(scale, spark, 120)
    spark.registered = registered  # type: ignore[method-assign]
    assert run(scale, spark, 20).ended == 1


def recovered(wanted: int) -> tuple[Scale, Spark]:
    """Return so many executors that ended again and again until a minute and a half ago, and run since."""
    spark = Spark(wanted, life=2.0)
    scale = Scale(spark, spark, wanted)
    run(scale, spark, 200)
    spark.life = 1e9
    assert run(scale, spark, LONGEST_PAUSE + 10).running == wanted
    run(scale, spark, SETTLED_SECONDS + 30)
    return scale, spark


def test_fewer_and_then_more_again_are_started_at_once_though_others_ended_before() -> None:
    scale, spark = recovered(8)
    assert run(scale, spark, 10, wanted=4).running == 4
    assert run(scale, spark, 10, wanted=6).running == 6
    assert run(scale, spark, 10, wanted=8).running == 8


def test_those_that_end_their_tasks_are_replaced_when_they_have_gone_though_others_ended_before() -> None:
    scale, spark = recovered(4)
    spark.release = lambda ids: None  # type: ignore[method-assign] # their tasks take long
    run(scale, spark, 10, wanted=2)
    assert run(scale, spark, 100, wanted=4).leaving == 2
    spark.born = {number: since for number, since in spark.born.items() if number in sorted(spark.born)[:2]}
    assert run(scale, spark, 10, wanted=4).running == 4


def test_one_that_was_on_its_way_when_fewer_were_wanted_and_stays_is_missed_when_it_ends() -> None:
    spark = Spark(4)
    scale = Scale(spark, spark, 4)
    run(scale, spark, 20)
    run(scale, spark, 1, wanted=8)
    assert run(scale, spark, 20, wanted=7).running == 8
    spark.born = {number: since for number, since in spark.born.items() if number <= 4}
    assert run(scale, spark, 2, wanted=7).ended == 4


def test_without_an_answer_of_the_api_server_what_ends_is_replaced_at_once() -> None:
    spark = Spark(2)
    unknown = Spark(0)
    unknown.check = lambda now: None  # type: ignore[assignment, method-assign, return-value] # it never answers
    scale = Scale(spark, unknown, 2)
    run(scale, spark, 20)
    spark.born.clear()
    assert run(scale, spark, 6).running == 2


def test_pauses_double_up_to_five_minutes_however_often_executors_end() -> None:
    assert [pause_after(rounds) for rounds in range(9)] == [0, 0, 10, 20, 40, 80, 160, 300, 300]
    assert pause_after(10_000) == 300
