"""Faults are told by class, and each mistake with the fault that it followed."""

import json

from tests.chaos.checker import Mistake, Verdict
from tests.chaos.faults import Fault, Kind
from tests.chaos.report import BEFORE, Line, Outcome, Rescaled, lines, summary, table, total


def outcome(
    kind: Kind, since: float, *, gap: float = 1.0, inside: bool = False, recovered: float | None = 1.0
) -> Outcome:
    fault = Fault(1, kind, inside, moment=0.5, orderly=False)
    return Outcome(fault, "a target", since + 2, inside, since, recovered, gap)


def verdict(mistakes: tuple[Mistake, ...] = (), repeats: tuple[float, ...] = ()) -> Verdict:
    return Verdict(100, 105, mistakes, wrong=(), unexpected=(), wrong_states=(), repeats=repeats)


OUTCOMES = (
    outcome(Kind.S3, 100.0, gap=42.0, inside=True),
    outcome(Kind.DRIVER_JVM, 200.0, gap=20.0),
    outcome(Kind.DRIVER_JVM, 300.0, gap=25.0, inside=True, recovered=None),
)


def test_each_class_tells_how_many_faults_it_had_how_many_were_survived_and_its_longest_gap() -> None:
    found = lines(OUTCOMES, verdict())
    assert found == {
        "driver-jvm": Line(faults=2, inside=1, survived=1, longest_gap=25.0),
        "s3": Line(faults=1, inside=1, survived=1, longest_gap=42.0),
    }
    assert total(found) == Line(faults=3, inside=2, survived=2, longest_gap=42.0)


def test_mistakes_and_repeats_belong_to_the_last_fault_before_them() -> None:
    mistakes = (
        Mistake("lost", "a", 1, 90.0, 1),
        Mistake("lost", "a", 2, 150.0, 3),
        Mistake("doubled", "a", 5, 301.0, 2),
    )
    found = lines(OUTCOMES, verdict(mistakes, repeats=(201.0, 299.0, 302.0)))
    assert found[BEFORE] == Line(lost=1)
    assert (found["s3"].lost, found["s3"].doubled, found["s3"].repeats) == (3, 0, 0)
    assert (found["driver-jvm"].lost, found["driver-jvm"].doubled, found["driver-jvm"].repeats) == (0, 2, 3)


def test_the_table_has_a_row_for_each_class_and_one_for_all() -> None:
    rows = table(lines(OUTCOMES, verdict())).splitlines()
    assert [row.split()[0] for row in rows] == ["class", "driver-jvm", "s3", "all"]
    assert rows[-1].split()[1:] == ["3", "2", "2", "0", "0", "0", "42.0", "s"]


def test_the_summary_is_json_and_names_the_figures_and_the_seed() -> None:
    rescaled = Rescaled(2, {"Completed": 3, "Refused": 1})
    shown = json.loads(json.dumps(summary(OUTCOMES, verdict(), rescaled, {"seed": 7})))
    assert shown["chaos"]["faults"] == 3
    assert shown["chaos"]["survived"] == 2
    assert shown["chaos"]["lost"] == shown["chaos"]["duplicated"] == 0
    assert shown["chaos"]["longest_gap_seconds"] == 42.0
    assert shown["classes"]["s3"]["in_a_batch"] == 1
    assert shown["rescales"] == {"executors": 2, "repartitions": {"Completed": 3, "Refused": 1}}
    assert shown["parameters"] == {"seed": 7}


def test_rescales_are_told_with_their_ends_and_none_is_told_as_none() -> None:
    assert str(Rescaled(2, {"Completed": 3, "Refused": 1})).endswith(
        "executors 2 times; repartitions of the state: 3 Completed, 1 Refused"
    )
    assert str(Rescaled()).endswith("executors 0 times; repartitions of the state: none")
