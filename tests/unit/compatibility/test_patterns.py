"""The patterns of scripts: each is complete, and together they are enough. No servers."""

import re
from collections import Counter

import msgspec
import pytest

from docs import generate_compatibility as generator
from tests.compatibility.patterns import DATA, Elsewhere, Outcome, Pattern, Topic, load, read
from tests.gate.promises import look_up
from tidegate_spark.contract.reasons import Reason

PATTERNS = load()
PLACES = {"input", "output", "port", "brokers", "topic", "folder"}


@pytest.mark.parametrize("pattern", PATTERNS.pattern, ids=lambda pattern: pattern.name)
def test_a_pattern_is_complete(pattern: Pattern) -> None:
    compile(pattern.path.read_text(), str(pattern.path), "exec")
    reasons = [reason for reason in (pattern.reason, pattern.next_reason, *pattern.events) if reason]
    assert [reason for reason in reasons if reason not in set(Reason)] == []
    refused = pattern.outcome is Outcome.REFUSED
    assert (bool(pattern.reason), bool(pattern.says)) == (refused, refused or bool(pattern.next_reason))
    assert set(pattern.fresh) <= set(pattern.queries)
    assert pattern.only in {"", "local", "cluster"}
    assert not (pattern.middle and pattern.outcome is not Outcome.FINITE)
    filled = pattern.arguments(dict.fromkeys(PLACES, ""))
    left = (*filled, *pattern.variables(dict.fromkeys(PLACES, "")).values())
    assert [text for text in left if re.search(r"\{\w+\}", text)] == []


def test_there_are_many_of_each_kind_about_every_topic() -> None:
    assert len(PATTERNS.pattern) >= 60
    assert {each.topic for each in PATTERNS.pattern} == set(Topic)
    assert min(Counter(each.outcome for each in PATTERNS.pattern).values()) >= 10


def test_no_name_is_there_twice_and_eight_stand_for_all() -> None:
    names = Counter(each.name for each in PATTERNS.pattern)
    assert [name for name, count in names.items() if count > 1] == []
    standing = [each for each in PATTERNS.pattern if each.representative]
    assert len(standing) == 8
    assert {each.outcome for each in standing} == set(Outcome)
    # They start Spark with what a warm JVM has, and nothing else.
    assert [each.name for each in standing if each.own_jvm or not each.runs_on("local")] == []


def test_every_script_of_this_folder_is_in_a_pattern() -> None:
    used = {each.path for each in PATTERNS.pattern}
    assert sorted(path.name for path in (DATA.parent / "scripts").glob("*.py") if path not in used) == []


@pytest.mark.parametrize("other", PATTERNS.elsewhere, ids=lambda other: other.name)
def test_what_another_test_shows_is_a_test(other: Elsewhere) -> None:
    wrong, _ = look_up(other.evidence)
    assert wrong == ""


def test_a_key_that_there_is_not_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field `outcom`"):
        read(DATA.read_text().replace("\noutcome = ", "\noutcom = ", 1))


def test_the_page_is_up_to_date() -> None:
    assert generator.main(["--check"]) == 0
