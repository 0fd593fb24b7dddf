"""The page on troubleshooting leads to every reason that calls for somebody, once. Reads the page."""

import pytest

from docs import generate_troubleshooting as generator
from tidegate_spark.contract.reasons.registry import AREAS


def test_every_reason_that_calls_for_somebody_has_one_row() -> None:
    calling = [entry.reason for area in AREAS for entry in area.entries if generator.calls(entry)]
    _, sections = generator.load()
    assert sorted(generator.listed(sections)) == sorted(calling), (
        "docs/troubleshooting.toml names each reason that calls for somebody, once: "
        f"add {sorted(set(calling) - set(generator.listed(sections)))}, "
        f"remove {sorted(set(generator.listed(sections)) - set(calling))}"
    )


def test_the_page_is_up_to_date() -> None:
    assert generator.main(["--check"]) == 0


@pytest.mark.parametrize(
    ("meaning", "shown"),
    [
        ("It was running. Now it is not. It waits.", "It was running. Now it is not."),
        ("It runs.", "It runs."),
        (
            "A volume of spec.scratch cannot be attached or mounted. It waits.",
            "A volume of spec.scratch cannot be attached or mounted.",
        ),
    ],
)
def test_a_row_has_the_first_sentence_and_the_second_if_that_is_short(meaning: str, shown: str) -> None:
    assert generator.beginning(meaning) == shown
