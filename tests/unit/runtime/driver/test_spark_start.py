"""With which variables Spark's JVM is started for a script: those of before the script, as under spark-submit."""

import dataclasses
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate_spark.contract.protocol import Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.driver.script.spark_start import Files, SparkStart
from tidegate_spark.jvm import session as spark_session
from tidegate_spark.process.environment import Environment
from tidegate_spark.process.progress import Progress
from tidegate_testing.driver_process import driver_config

BEFORE = {"PATH": "/bin", "JAVA_HOME": "/usr/lib/jvm/here", "AWS_ACCESS_KEY_ID": "of-the-storage"}
CONFIG = driver_config("orders", "local:///opt/main.py", Storage("s3://bucket/apps/shop/orders"))


def variables() -> Mapping[str, str]:
    """Those of this process, but for pytest's own, which it sets in the middle of a test."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}


class World:
    """A driver's process whose script is about to ask for Spark."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._set = monkeypatch
        for name in variables():
            monkeypatch.delenv(name)
        for name, value in BEFORE.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(spark_session, "prepare_context", self._started)
        environment = dataclasses.replace(Environment.read({}), work_directory=str(folder))
        self.progress = Progress(CONFIG)
        process: Any = None
        ending: Any = SimpleNamespace(requested=threading.Event())
        start = SparkStart(CONFIG, environment, self.progress, process, files=Files((), ""), ending=ending)
        self._host = start.host(lambda session: None)
        self.of_jvm: Mapping[str, str] = {}

    def _started(self, *arguments: Any, **named: Any) -> Any:
        self.of_jvm = variables()
        return None, None

    def script(self, **its: str | None) -> Mapping[str, str]:
        """Have a script set, or remove, variables and ask for Spark; return those that the JVM is started with."""
        for name, value in its.items():
            if value is None:
                self._set.delenv(name)
            else:
                self._set.setenv(name, value)
        self._host.prepare({})
        return self.of_jvm


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def test_what_a_script_makes_of_its_variables_does_not_reach_the_jvm_and_stays_the_scripts(world: World) -> None:
    its = {
        "JAVA_HOME": "/usr/lib/jvm/of-a-tutorial",
        "SPARK_HOME": "/content/spark-3.1.1-bin-hadoop3.2",
        "PYSPARK_PIN_THREAD": "false",
        "AWS_ACCESS_KEY_ID": "of-inputs",
        "PATH": None,
    }
    assert world.script(**its) == BEFORE
    assert variables() == {name: value for name, value in its.items() if value is not None}
    assert not world.progress.report().notices


def test_a_script_that_empties_its_environment_has_spark_all_the_same(world: World) -> None:
    assert world.script(**dict.fromkeys(BEFORE)) == BEFORE
    assert variables() == {}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--packages a:b:1 pyspark-shell", True),
        ("pyspark-shell", False),
        (" pyspark-shell\n", False),
        ("", False),
        (" ", False),
    ],
)
def test_arguments_for_spark_submit_that_are_not_used_are_an_event(world: World, arguments: str, said: bool) -> None:
    world.script(PYSPARK_SUBMIT_ARGS=arguments)
    notices = [each for each in world.progress.report().notices if "PYSPARK_SUBMIT_ARGS" in each.message]
    assert [each.reason for each in notices] == [Reason.CONFIGURATION_IGNORED] * said
