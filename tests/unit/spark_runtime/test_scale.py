"""How a driver comes to the number of executors that is wanted: who goes, when, and what is counted. No JVM."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tidegate_spark.executors import SURPLUS_SECONDS, Count, Scale


@dataclass
class Backend:
    """Spark's scheduler: executors come when a test says so; those that are released have tasks until it ends them."""

    ids: list[str] = field(default_factory=list)
    target: int = 0
    let_gone: list[str] = field(default_factory=list)

    def registered(self) -> Sequence[str]:
        return list(self.ids)

    def request(self, wanted: int) -> None:
        self.target = wanted

    def let_go(self, ids: Sequence[str]) -> None:
        assert self.target < len(self.ids), "Spark would replace who goes"
        self.let_gone += ids

    def end(self, *ids: str) -> None:
        self.ids = [each for each in self.ids if each not in ids]


def count(scale: Scale, wanted: int | None, now: float) -> tuple[int, int]:
    """Return how many run and how many go."""
    found = scale.look(wanted, now)
    return found.running, found.leaving


def test_nothing_is_asked_of_spark_before_anybody_wants_another_number() -> None:
    backend = Backend(["1", "2"])
    assert Scale(backend).look(None, 0.0) == Count(2, 0)
    assert (backend.target, backend.let_gone) == (0, [])


def test_of_too_many_the_youngest_go_and_do_not_count_as_running_while_their_tasks_end() -> None:
    backend = Backend(["9", "10", "2"])
    scale = Scale(backend)
    assert count(scale, 1, 0.0) == (1, 2)
    assert (backend.target, backend.let_gone) == (1, ["9", "10"])
    assert count(scale, 1, 1.0) == (1, 2)
    backend.end("10")
    assert count(scale, 1, 2.0) == (1, 1)
    backend.end("9")
    assert count(scale, 1, 3.0) == (1, 0)
    assert backend.let_gone == ["9", "10"], "nobody is released twice"


def test_executors_that_go_are_no_part_of_those_that_are_wanted_again() -> None:
    backend = Backend(["1", "2", "3"])
    scale = Scale(backend)
    scale.look(1, 0.0)
    assert count(scale, 2, 1.0) == (1, 2)
    assert backend.target == 2
    backend.end("2", "3")
    backend.ids.append("4")
    assert count(scale, 2, 2.0) == (2, 0)
    assert backend.let_gone == ["2", "3"]


def test_an_executor_that_was_on_its_way_when_fewer_were_wanted_goes_after_a_while() -> None:
    backend = Backend(["1"])
    scale = Scale(backend)
    scale.look(2, 0.0)
    scale.look(1, 5.0)
    backend.ids.append("2")
    assert count(scale, 1, 6.0) == (2, 0)
    assert count(scale, 1, 6.0 + SURPLUS_SECONDS) == (1, 1)
    assert backend.let_gone == ["2"]


def test_one_that_was_made_in_the_place_of_a_lost_one_stays() -> None:
    backend = Backend(["1", "2"])
    scale = Scale(backend)
    scale.look(2, 0.0)
    backend.ids.append("3")
    scale.look(2, 1.0)
    backend.end("1")
    scale.look(2, 2.0)
    backend.ids.append("4")
    scale.look(2, SURPLUS_SECONDS)
    assert count(scale, 2, SURPLUS_SECONDS + 1.5) == (3, 0), "the while begins again with each surplus"
    assert backend.let_gone == []


def test_of_those_that_go_it_is_known_which_has_been_at_it_for_longest() -> None:
    backend = Backend(["1", "2", "3", "4"])
    scale = Scale(backend)
    assert scale.look(3, 5.0) == Count(3, 1, "4", 5.0)
    assert scale.look(1, 20.0) == Count(1, 3, "4", 5.0)
    backend.end("4")
    assert scale.look(1, 30.0) == Count(1, 2, "2", 20.0)
    backend.end("2", "3")
    assert scale.look(1, 40.0) == Count(1, 0, "", 0.0)
