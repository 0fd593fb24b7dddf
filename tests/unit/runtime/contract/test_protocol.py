"""What crosses the border between operator and runtime survives the crossing, and nonsense is refused by name."""

import json
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from tidegate_spark.contract.json_form import NewerFormatError, from_report, from_stored
from tidegate_spark.contract.protocol import (
    DEPENDENCY_REASONS,
    EXIT_CODES,
    EXIT_DEPENDENCY,
    AgentReport,
    DriverConfig,
    DriverState,
    ExecutorSettings,
    Fault,
    Notice,
    QueryReport,
    Storage,
    Termination,
    application_uri,
    from_json,
    to_json,
)
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.entry import Place
from tidegate_spark.contract.reasons.registry import reasons_at

STORAGE = Storage("s3://bucket/some/prefix/ns/app", "http://store:9000", path_style_access=True)
EXECUTOR = ExecutorSettings(2, "image:1", "IfNotPresent", "account", "app-e3", template={"spec": {"containers": []}})


@pytest.mark.parametrize(
    "value",
    [
        DriverConfig("app", "ns", "uid", 3, 1, "app-driver", "local:///a.py", STORAGE, EXECUTOR, args=("--a", "b")),
        AgentReport("app", "uid", 3, DriverState.WAITING, Fault(Reason.BUCKET_NOT_FOUND, "no bucket")),
        AgentReport(
            "app",
            "uid",
            3,
            DriverState.RUNNING,
            None,
            (QueryReport("q", 7, last_commit_time=1.5),),
            2,
            1,
            (Notice(1, "R", "m"),),
        ),
        Termination(Reason.APPLICATION_FAILED, "boom", 3, "ValueError", {"q": 7}, boundary=False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_is_the_same_on_the_other_side(value: Any) -> None:
    assert from_json(type(value), to_json(value)) == value


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("caf\udce9.csv", "caf\ufffd.csv"),
        ("\ud83d", "\ufffd"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\N{GRINNING FACE}", "\N{GRINNING FACE}"),
        ("\ud55c\uad6d", "\ud55c\uad6d"),
        (r"\udce9, \\udce9", r"\udce9, \\udce9"),
        ("\\\udce9", "\\\ufffd"),
    ],
)
def test_half_a_character_as_python_has_it_in_names_of_files_is_told_as_one_that_is_not_known(
    text: str, whole: str
) -> None:
    """No other program reads or writes it: such a report was none, and what it said could not be written down."""
    fault = Fault(Reason.COMPLETED, text)
    assert msgspec.json.decode(to_json(fault))["message"] == whole
    assert from_report(Fault, json.dumps(vars(fault))).message == whole


@pytest.mark.parametrize(
    ("number", "batch", "rate"),
    [
        ("1" + "0" * 400, 2**63 - 1, float(2**63)),
        ("-1" + "0" * 400, -(2**63), -float(2**63)),
        (str(2**63 - 1), 2**63 - 1, float(2**63)),
        ("7", 7, 7.0),
    ],
)
def test_a_number_beyond_64_bits_is_the_nearest_that_a_status_holds(number: str, batch: int, rate: float) -> None:
    report = from_report(QueryReport, f'{{"name": "q", "batch_id": {number}, "input_rows_per_second": {number}}}')
    assert (report.batch_id, report.input_rows_per_second) == (batch, rate)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_a_rate_that_no_status_holds_is_zero_and_the_rest_of_the_report_is_read(number: str) -> None:
    report = from_report(QueryReport, f'{{"name": "q", "batch_id": 7, "input_rows_per_second": {number}}}')
    assert (report.batch_id, report.input_rows_per_second) == (7, 0.0)


def test_fields_that_a_newer_version_added_are_ignored() -> None:
    assert from_json(Fault, '{"reason": "Completed", "message": "m", "since": 1}') == Fault(Reason.COMPLETED, "m")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("[]", "Fault"),
        ('{"message": "m"}', "Fault.reason"),
        ('{"reason": "Completed", "message": 1}', "Fault.message"),
        ('{"reason": "NoSuchReason", "message": "m"}', "NoSuchReason"),
    ],
)
def test_nonsense_is_refused_and_its_place_is_named(text: str, where: str) -> None:
    with pytest.raises(ValueError, match=where):
        from_json(Fault, text)


@dataclass(frozen=True)
class Stored:
    """A form of format 2."""

    names: tuple[str, ...]
    version: int = 1


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ('{"names": ["a"]}', Stored(("a",))),
        ('{"names": ["a"], "version": 1, "more": 1}', Stored(("a",), 1)),
        ('{"names": [], "version": 2}', Stored((), 2)),
    ],
    ids=["before there were numbers", "of the format before", "of the newest"],
)
def test_a_stored_form_is_read_in_each_format_that_is_known(text: str, read: Stored) -> None:
    assert from_stored(Stored, text, 2) == read


def test_a_newer_format_is_named_before_anything_that_changed_with_it() -> None:
    with pytest.raises(NewerFormatError, match="its format is 3, and this Tidegate knows 2: use a newer Tidegate"):
        from_stored(Stored, '{"version": 3, "names": {"a": 1}}', 2)


@pytest.mark.parametrize("number", ["0", "-1", "true", '"2"', "null", "1.0"])
def test_what_is_no_number_of_a_format_is_damage(number: str) -> None:
    with pytest.raises(ValueError, match="expected the number of a format") as raised:
        from_stored(Stored, f'{{"version": {number}, "names": []}}', 2)
    assert not isinstance(raised.value, NewerFormatError)


def test_every_reason_that_an_ended_process_can_have_has_an_exit_code() -> None:
    # Of these the operator learns otherwise: the process did not live to write a termination message, or wrote another.
    by_others = {
        Reason.OUT_OF_MEMORY,
        Reason.DRIVER_LOST,
        Reason.EPHEMERAL_STORAGE_EXCEEDED,
        Reason.UNKNOWN_TERMINATION,
        Reason.UNKNOWN,
    }
    assert set(reasons_at(Place.LAST_EXIT)) - by_others == set(EXIT_CODES)


def test_faults_outside_the_application_share_the_code_that_spends_no_budget() -> None:
    assert {reason for reason, code in EXIT_CODES.items() if code == EXIT_DEPENDENCY} == DEPENDENCY_REASONS


def test_keys_lie_below_the_applications_prefix() -> None:
    assert STORAGE.bucket == "bucket"
    assert STORAGE.key("logs", "e1") == "some/prefix/ns/app/logs/e1"
    assert STORAGE.hadoop_uri == "s3a://bucket/some/prefix/ns/app"
    assert application_uri("s3://bucket/", "ns", "app") == "s3://bucket/ns/app"
