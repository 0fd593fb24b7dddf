"""The golden copies themselves: each belongs to a test, what changes shows, and words mean what they meant."""

import json
import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import pytest

from tidegate_spark.contract.control_protocol import MessageState
from tidegate_spark.contract.json_form import from_json, to_json
from tidegate_spark.contract.protocol import DriverState
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.rehearsal_protocol import RehearsalResult
from tidegate_spark.contract.snapshot_protocol import SnapshotState
from tidegate_spark.control_log.entries import Kind
from tidegate_spark.control_log.reducer import Verdict
from tidegate_spark.snapshots.catalog import State
from tidegate_testing.stored_forms import FOLDER, RULE, Form, stored, with_more

WORDS: list[type[Enum]] = [
    DriverState,
    Kind,
    MessageState,
    RehearsalResult,
    SnapshotState,
    State,
    Verdict,
]
"""What stands in stored forms as a word; ``State`` is a snapshot's in the catalog."""


def test_every_golden_copy_belongs_to_a_test() -> None:
    named = re.compile(r'(?:Form|assert_read|assert_written|stored)\(\s*"([\w-]+)"')
    used = {name for test in Path(__file__).parent.glob("test_*.py") for name in named.findall(test.read_text())}
    assert {file.name for file in FOLDER.iterdir()} == {f"{name}.json" for name in used}, (
        f"each file in {FOLDER.name}/ is read by a test of this folder, and each form that a test names has a file: "
        "delete or add it"
    )


@pytest.mark.parametrize("words", WORDS, ids=[words.__name__ for words in WORDS])
def test_a_word_that_is_stored_means_what_it_meant(words: type[Enum]) -> None:
    known = {word.name: word.value for word in words}
    assert known == json.loads(stored("words"))[words.__name__], (
        "Stored words are read by other versions: never rename or drop one. One that is added is unknown to versions "
        "before, or makes what it stands in unreadable to them: see to it that they can do without, and add it to "
        "words.json."
    )


def test_a_reason_that_is_stored_is_still_read_by_whatever_name_it_has_today() -> None:
    known = json.loads(stored("words"))["Reason"]
    assert {word: str(Reason(word)) for word in known} == known


def test_every_kind_of_word_is_looked_at() -> None:
    assert set(json.loads(stored("words"))) == {words.__name__ for words in WORDS} | {"Reason"}


# --- a form that changes ---


@dataclass(frozen=True)
class Pair:
    """As it is stored in ``upgrade-pin``."""

    lineage: int
    batches: dict[str, int]


@dataclass(frozen=True)
class Renamed:
    """The same, after somebody has renamed a field."""

    lineage: int
    last: dict[str, int]


@dataclass(frozen=True)
class Grown:
    """The same, after somebody has added a field."""

    lineage: int
    batches: dict[str, int]
    note: str = ""


PAIR = Pair(1, {"main": 2, "other": 0})


def form_of(value: Pair | Renamed | Grown) -> Form:
    return Form("upgrade-pin", value, lambda body: from_json(type(value), body), lambda it: to_json(it).encode())


def test_a_field_that_is_renamed_is_shown_with_the_rule() -> None:
    form = form_of(Renamed(1, {"main": 2, "other": 0}))
    with pytest.raises(AssertionError, match=r"Renamed\.last: missing.*never rename or drop one"):
        form.assert_read()
    with pytest.raises(AssertionError) as shown:
        form.assert_written()
    lines = str(shown.value).splitlines()
    assert [line for line in lines if "batches" in line or "last" in line] == ['- "batches": {', '+ "last": {']
    assert lines[-1] == RULE


def test_a_value_that_is_read_otherwise_is_shown_with_the_rule() -> None:
    form = Form("upgrade-pin", PAIR, lambda body: Pair(1, {"main": 2}), None)
    with pytest.raises(AssertionError) as shown:
        form.assert_read()
    lines = str(shown.value).splitlines()
    assert lines[2:] == ["@@ -1 +1 @@", f"-{PAIR}", "+Pair(lineage=1, batches={'main': 2})", RULE]


def test_a_field_that_is_added_can_be_read_without_and_asks_for_a_copy_with_it() -> None:
    grown = form_of(Grown(1, {"main": 2, "other": 0}))
    grown.assert_read()
    for asserted in (grown.assert_written, grown.assert_reported):
        with pytest.raises(AssertionError, match="add fields with a default"):
            asserted()


def test_other_bytes_of_the_same_json_count_where_something_goes_by_them() -> None:
    form_of(PAIR).assert_written()
    exact = Form("upgrade-pin", PAIR, lambda body: PAIR, lambda it: to_json(it).encode(), to_the_byte=True)
    with pytest.raises(AssertionError, match="the same, in other bytes"):
        exact.assert_written()


def test_a_field_more_is_put_into_objects_and_not_into_maps_by_name() -> None:
    document = json.loads(with_more("upgrade-pin", PAIR))
    assert set(document) == {"lineage", "batches", "fieldOfALaterVersion"}
    assert set(document["batches"]) == {"main", "other"}
