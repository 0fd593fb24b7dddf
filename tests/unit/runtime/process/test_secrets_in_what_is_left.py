"""A planted secret is in nothing that a driver leaves behind, by its value and by its shape. One small process."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tidegate_spark
from tidegate_spark.contract.control_protocol import ControlReport, MessageReport, MessageState, QueryAcknowledgement
from tidegate_spark.contract.protocol import LOG_FORMAT_VARIABLE, AgentReport, DriverState, Fault, Termination, to_json
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import SnapshotReport, SnapshotState
from tidegate_spark.control.channels.pending_replies import Ended
from tidegate_spark.control.channels.replies import reply_of
from tidegate_spark.control_log.entries import Entry, Kind
from tidegate_spark.process.log_lines import log_to_stderr
from tidegate_spark.process.redaction import Secrets, Stream, clean_message, clean_report, values_of_launch
from tidegate_spark.process.termination import termination_text
from tidegate_spark.snapshots.service.pod import word_of

KNOWN = "correct horse"
PASSWORD = "hunter2hunter2"
WORDS = f"no answer from amqp://orders:{PASSWORD}@rabbit/v with {KNOWN}"
SECRETS = Secrets([KNOWN])
SOURCES = str(Path(tidegate_spark.__file__).parents[1])


def assert_clean(text: str) -> None:
    assert [each for each in (KNOWN, PASSWORD) if each in text] == []
    assert "[redacted]" in text


def test_not_in_the_output_and_its_archive() -> None:
    stream = Stream(SECRETS)
    assert_clean((stream.feed(WORDS.encode()) + stream.flush()).decode())
    assert_clean(SECRETS.clean_bytes(WORDS.encode()).decode())


def test_not_in_a_termination_message() -> None:
    assert_clean(termination_text(Termination(Reason.APPLICATION_FAILED, WORDS, 1), SECRETS))


def test_not_in_the_word_of_a_snapshot_pod() -> None:
    assert_clean(word_of((SnapshotReport("s", SnapshotState.FAILED, message=WORDS),), SECRETS))


def test_not_in_a_report() -> None:
    acknowledged = {"main": QueryAcknowledgement(1, errors=(WORDS,))}
    message = MessageReport("m", MessageState.FAILED, message=WORDS, queries=acknowledged)
    report = AgentReport(
        app="a",
        uid="u",
        epoch=1,
        state=DriverState.WAITING,
        fault=Fault(Reason.BROKER_UNAVAILABLE, WORDS),
        control=ControlReport(messages=(message,)),
        snapshots=(SnapshotReport("s", SnapshotState.FAILED, message=WORDS),),
    )
    assert_clean(to_json(clean_report(report, SECRETS)))


def test_not_in_a_reply_to_whoever_sent_a_message() -> None:
    entry = Entry(1, Kind.MESSAGE, "1", "ping", source="s", origin="o")
    acknowledged = {"main": QueryAcknowledgement(1, errors=(WORDS,))}
    report = MessageReport("1", MessageState.FAILED, 1, message=WORDS, queries=acknowledged)
    assert_clean(reply_of(Ended(entry, clean_message(report, SECRETS)), "shop", "orders").body.decode())


@pytest.mark.parametrize("form", ["", "json"])
def test_not_by_its_shape_in_a_line_of_the_runtime(form: str, capfd: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("tidegate")
    before = log.__class__
    try:
        log_to_stderr({LOG_FORMAT_VARIABLE: form})
        log.warning("%s", WORDS)
    finally:
        log.__class__ = before
    said = capfd.readouterr().err
    assert PASSWORD not in said
    assert "amqp://orders:[redacted]@rabbit/v" in said


def test_not_in_the_last_words_of_a_driver_that_could_not_start(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": SOURCES,
        "SPARK_HOME": f"/opt/{KNOWN}",
        "DATABASE_PASSWORD": KNOWN,
        "TIDEGATE_TERMINATION_LOG": str(tmp_path / "termination"),
        "TIDEGATE_CONFIG": "{",
    }
    program = (
        "import tidegate_spark.driver.start as start\n"
        "def fail(*_): raise ValueError(WORDS)\n"
        "start.read_config = fail\n"
        "from tidegate_spark.__main__ import main\n"
        "raise SystemExit(main())\n"
    ).replace("WORDS", repr(WORDS))
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    left = (tmp_path / "termination").read_text()
    assert json.loads(left)["reason"] == Reason.APPLICATION_FAILED
    assert_clean(left)
    assert_clean(done.stderr)


def test_what_settings_and_arguments_hold_is_known() -> None:
    settings = {"spark.orders.password": "of-a-setting", "spark.x.url": "x://u:of-an-address@h", "spark.x": "usual"}
    arguments = ("--password", "of-an-argument", "--token=of-an-option", "--secret", "--other", "topic")
    found = values_of_launch(settings, arguments)
    assert sorted(found) == ["of-a-setting", "of-an-address", "of-an-argument", "of-an-option"]


@pytest.mark.parametrize(
    "argument",
    [
        *("db.password=of-a-setting", "+db.password=of-a-setting", "spark.x.secret.key=of-a-setting"),
        *("db/pg@backup.password=of-a-setting", "--db:password=of-a-setting", "--auth[password]=of-a-setting"),
        *("authToken=of-a-setting", "--spark/password=of-a-setting"),
    ],
)
def test_so_is_what_an_argument_sets_that_is_no_option(argument: str) -> None:
    assert values_of_launch({}, ["--conf", argument]) == ("of-a-setting",)


@pytest.mark.parametrize(
    "argument",
    [
        *("filter by token=customer_token", "db.password=${oc.env:PASSWORD}", "key=customer_id", "a/token=b_token_c"),
        *("secret_scope=production", "token_column=customer_id", "max_token=10000000"),
    ],
)
def test_what_only_looks_like_it_is_not_left_out_of_the_log(argument: str) -> None:
    assert values_of_launch({}, [argument]) == ()
