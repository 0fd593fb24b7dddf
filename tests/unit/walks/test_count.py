"""From what processes have noted to walks: what counts in which time, what the frame takes out, in which order."""

import pytest

from tests.walks.count import OPERATOR, RUNTIME, Act, Trace, frame, read, walk
from tests.walks.report import summary, text

OPERATORS, DRIVERS, WORKERS = 10, 20, 21
PROGRAMS = (
    f"0.1\t{OPERATORS}\t\t-m tidegate.main\n",
    f"0.2\t{DRIVERS}\t\t-m tidegate_spark\n",
    f"0.3\t{WORKERS}\t\t-m pyspark.daemon (forked)\n",
)
QUIET = Act("quiet", None, 100.0, {OPERATOR: 160.0, RUNTIME: 160.0})


def trace(*calls: tuple[float, int, str]) -> Trace:
    return read([*PROGRAMS, *(f"{at}\t{pid}\t{module}\n" for at, pid, module in calls)])


def act(began: float = 200.0, operator: float = 210.0, runtime: float = 220.0, limit: int | None = 2) -> Act:
    return Act("edit", limit, began, {OPERATOR: operator, RUNTIME: runtime})


def test_what_is_called_during_the_act_and_not_in_the_quiet_time_is_on_the_walk() -> None:
    seen = trace((110, OPERATORS, "tidegate.a"), (201, OPERATORS, "tidegate.a"), (202, OPERATORS, "tidegate.b"))
    assert walk(seen, [act()], frame(seen, QUIET)).modules == {"tidegate.b"}


def test_what_is_called_before_or_after_or_between_is_on_none() -> None:
    seen = trace((99, OPERATORS, "tidegate.a"), (199, OPERATORS, "tidegate.b"), (221, DRIVERS, "tidegate_spark.c"))
    assert walk(seen, [act()], frame(seen, QUIET)).modules == frozenset()
    assert frame(seen, QUIET) == {OPERATOR: frozenset(), RUNTIME: frozenset()}


def test_what_is_not_called_each_time_that_the_act_is_done_is_not_on_the_walk() -> None:
    seen = trace(
        (201, OPERATORS, "tidegate.b"),
        (202, OPERATORS, "tidegate.retry"),
        (203, OPERATORS, "tidegate.a"),
        (301, OPERATORS, "tidegate.a"),
        (302, OPERATORS, "tidegate.b"),
    )
    found = walk(seen, [act(), act(300, 310, 330)], {})
    assert [part.modules for part in found.parts] == [("tidegate.b", "tidegate.a")]
    assert found.seconds == 30


def test_each_side_has_its_own_end() -> None:
    seen = trace((215, OPERATORS, "tidegate.a"), (215, DRIVERS, "tidegate_spark.b"))
    assert walk(seen, [act()], {}).modules == {"tidegate_spark.b"}


def test_a_module_of_one_sides_frame_is_on_no_sides_walk() -> None:
    seen = trace(
        (110, OPERATORS, "tidegate_spark.contract.protocol"), (203, DRIVERS, "tidegate_spark.contract.protocol")
    )
    assert walk(seen, [act()], frame(seen, QUIET)).modules == frozenset()


def test_a_module_that_several_processes_call_counts_once_and_for_each_side() -> None:
    seen = trace((201, OPERATORS, "tidegate_spark.a"), (202, DRIVERS, "tidegate_spark.a"))
    found = walk(seen, [act()], {})
    assert len(found.modules) == 1
    assert found.sides == {OPERATOR: {"tidegate_spark.a"}, RUNTIME: {"tidegate_spark.a"}}


def test_processes_and_their_modules_are_in_the_order_of_first_calls_whatever_the_order_of_lines() -> None:
    seen = trace(
        (205, DRIVERS, "tidegate_spark.c"),
        (204, DRIVERS, "tidegate_spark.b"),
        (206, DRIVERS, "tidegate_spark.b"),
        (207, WORKERS, "tidegate_spark.b"),
        (201, OPERATORS, "tidegate.z"),
        (202, OPERATORS, "tidegate.a"),
    )
    assert [(part.program, part.modules) for part in walk(seen, [act()], {}).parts] == [
        ("-m tidegate.main", ("tidegate.z", "tidegate.a")),
        ("-m tidegate_spark", ("tidegate_spark.b", "tidegate_spark.c")),
        ("-m pyspark.daemon (forked)", ("tidegate_spark.b",)),
    ]


def test_a_line_that_is_still_being_written_is_left_out() -> None:
    assert read([PROGRAMS[0], "1.5\t10\ttidegate.a\n", "2.5\t10\ttideg"]).calls == read(["1.5\t10\ttidegate.a\n"]).calls


@pytest.mark.parametrize(
    ("newcomers", "expected"), [(False, {"tidegate_spark.end"}), (True, {"tidegate_spark.driver.start"})]
)
def test_an_act_may_be_that_of_processes_that_ran_already_or_of_those_that_have_begun_since(
    newcomers: bool, expected: set[str]
) -> None:
    seen = trace(
        (150, DRIVERS, "tidegate_spark.run"),
        (201, DRIVERS, "tidegate_spark.end"),
        (202, 22, "tidegate_spark.driver.start"),
    )
    done = Act("crash", None, 200.0, {RUNTIME: 220.0}, newcomers)
    assert walk(seen, [done], {}).modules == expected


@pytest.mark.parametrize(("limit", "over"), [(1, ["edit"]), (2, []), (None, [])])
def test_a_walk_over_its_limit_is_named_in_the_summary(limit: int | None, over: list[str]) -> None:
    seen = trace((110, OPERATORS, "tidegate.f"), (201, OPERATORS, "tidegate.a"), (202, DRIVERS, "tidegate_spark.b"))
    frames = frame(seen, QUIET)
    found = summary([walk(seen, [act(limit=limit)], frames)], QUIET, frames)
    assert found["over"] == over
    assert found["frame"] == {"operator": 1, "runtime": 0}
    assert found["walks"]["edit"] == {"modules": 2, "limit": limit, "operator": 1, "runtime": 1, "seconds": 20.0}


def test_the_text_says_so_if_an_act_took_longer_than_the_quiet_time() -> None:
    seen = trace((201, OPERATORS, "tidegate.a"))
    frames = frame(seen, QUIET)
    assert "with too many modules: edit" in text([walk(seen, [act(runtime=261.0)], frames)], QUIET, frames)
    assert "too many" not in text([walk(seen, [act()], frames)], QUIET, frames)
