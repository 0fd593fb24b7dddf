"""The runtime's own log lines, for people and for machines."""

import json
import logging
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import tidegate_spark
from tidegate_spark.contract.protocol import CONFIG_VARIABLE, EXECUTOR_CONFIG_VARIABLE, LOG_FORMAT_VARIABLE
from tidegate_spark.process.log_lines import context_of, log_to_stderr

CONFIG = json.dumps({"namespace": "shop", "app": "orders", "epoch": 7, "main": "local:///m.py"})
INI = "[loggers]\nkeys=root\n[logger_root]\nhandlers=\n[handlers]\nkeys=\n[formatters]\nkeys="
log = logging.getLogger("tidegate")


@pytest.fixture(autouse=True)
def untouched() -> Iterator[None]:
    before = log.__class__
    yield
    log.__class__ = before


def test_lines_for_people_are_text(capfd: pytest.CaptureFixture[str]) -> None:
    log_to_stderr({CONFIG_VARIABLE: CONFIG})
    log.info("stopping: %s", "Stopped", extra={"action": "stop", "reason": "Stopped"})
    assert capfd.readouterr().err.rstrip().endswith("tidegate INFO stopping: Stopped")


def test_lines_for_machines_tell_whose_they_are_what_is_done_and_why(capfd: pytest.CaptureFixture[str]) -> None:
    log_to_stderr({CONFIG_VARIABLE: CONFIG, LOG_FORMAT_VARIABLE: "json"})
    log.info("stopping: %s", "Stopped", extra={"action": "stop", "reason": "Stopped"})
    line = json.loads(capfd.readouterr().err)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "namespace": "shop",
        "app": "orders",
        "epoch": 7,
        "level": "info",
        "event": "stopping: Stopped",
        "action": "stop",
        "reason": "Stopped",
    }


@pytest.mark.parametrize(
    "configured",
    [
        "logging.config.dictConfig({'version': 1})",
        "logging.config.fileConfig(io.StringIO(INI))",
        "logging.disable(logging.CRITICAL)",
        "logging.basicConfig(level='ERROR', force=True)",
        "logging.setLogRecordFactory(lambda *a, **k: 1 / 0)",
        "sys.stderr.close()",
        "log.handlers.clear(); log.setLevel('CRITICAL'); log.propagate = True",
        "log.addFilter(lambda record: 1 / 0); [h.setLevel('CRITICAL') for h in log.handlers]",
    ],
    ids=["dictConfig", "fileConfig", "disable", "basicConfig", "factory", "closed", "emptied", "filtered"],
)
def test_a_script_that_configures_logging_does_not_silence_them(configured: str) -> None:
    """Its own process, for what it configures is the process's."""
    program = f"""
import io, logging.config, sys
INI = {INI!r}
from tidegate_spark.process.log_lines import log_to_stderr

log = logging.getLogger("tidegate")
log_to_stderr({{}})
{configured}
log.debug("detail")
log.info("stopping")
"""
    sources = str(Path(tidegate_spark.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": sources}, capture_output=True, text=True, check=False
    )
    assert done.stderr.endswith("tidegate INFO stopping\n"), done.stderr
    assert "detail" not in done.stderr


def test_a_traceback_stays_on_its_line(capfd: pytest.CaptureFixture[str]) -> None:
    log_to_stderr({LOG_FORMAT_VARIABLE: "json"})
    try:
        raise ValueError("two\nlines")
    except ValueError:
        log.exception("start failed")
    (line,) = capfd.readouterr().err.splitlines()
    assert "ValueError: two\nlines" in json.loads(line)["exception"]


@pytest.mark.parametrize(
    ("variables", "context"),
    [
        ({EXECUTOR_CONFIG_VARIABLE: '{"app": "orders", "epoch": 7}'}, {"app": "orders", "epoch": 7}),
        ({CONFIG_VARIABLE: "no JSON"}, {}),
        ({CONFIG_VARIABLE: "[1]"}, {}),
        ({}, {}),
    ],
)
def test_what_is_not_known_of_a_process_is_left_out(variables: Mapping[str, str], context: dict[str, object]) -> None:
    assert context_of(variables) == context
