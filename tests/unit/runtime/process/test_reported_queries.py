"""Which queries a report is about, where a script has more than a report has room for. No JVM."""

import pytest

from tidegate_spark.contract.json_form import to_json
from tidegate_spark.contract.protocol import Storage
from tidegate_spark.process.progress import Progress
from tidegate_testing.driver_process import driver_config

LONGEST_ANSWER = 1 << 20
"""Bytes of the longest report that the operator reads."""


def progress() -> Progress:
    return Progress(driver_config("app", "main.py", Storage("s3://bucket/app")))


def test_a_script_with_a_new_name_for_each_query_is_reported_about_for_ever_and_what_runs_is_in_it() -> None:
    found = progress()
    found.query_started("all-along", 7)
    found.query_ended("gone-wrong", 3, failed=True)
    for number in range(20_000):
        found.query_started(f"refresh-{number}", 0)
        found.query_ended(f"refresh-{number}", 1)
    report = found.report()
    assert len(to_json(report)) < LONGEST_ANSWER / 2
    names = [query.name for query in report.queries]
    assert names[:2] == ["all-along", "gone-wrong"]
    assert len(names) > 500
    assert names[2:] == [f"refresh-{number}" for number in range(20_002 - len(names), 20_000)]
    assert len(found.committed) == 20_002


@pytest.mark.parametrize("letter", ["x", "ü", "\N{WATER WAVE}"])
def test_names_of_any_length_leave_room_for_the_rest_of_the_report(letter: str) -> None:
    found = progress()
    for number in range(200):
        found.query_started(f"{number}-{letter * 5000}", 0)
    assert len(to_json(found.report())) < LONGEST_ANSWER / 2


def test_a_few_hundred_queries_are_all_reported_in_the_order_of_their_start() -> None:
    found = progress()
    for number in range(500):
        found.query_started(f"q{number}", 0)
    for number in range(0, 500, 2):
        found.query_ended(f"q{number}", 1)
    assert [query.name for query in found.report().queries] == [f"q{number}" for number in range(500)]
