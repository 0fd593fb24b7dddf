"""The command of a JVM that came up serves the next process of its pod, and nobody else. Real files and processes."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError

from tidegate_spark.contract.protocol import Storage
from tidegate_spark.jvm import launching, session
from tidegate_spark.jvm.jvm_command import SUBMIT, KeptCommand, arguments_of, digest_of, script_of
from tidegate_spark.process.environment import Environment
from tidegate_spark.process.progress import Progress
from tidegate_testing.driver_process import driver_config

VARIABLES = {"PATH": "/bin", "AWS_SECRET_ACCESS_KEY": "x y'z"}
SETTINGS = {"spark.driver.memory": "512m"}
JAVA = ["/usr/bin/java", "-cp", "/a b/*", "-Dx=$HOME 'quoted'"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Spark's folder."""
    (tmp_path / "spark/jars").mkdir(parents=True)
    (tmp_path / "spark/jars/a.jar").write_text("a")
    (tmp_path / "spark/conf").mkdir()
    return tmp_path / "spark"


def test_a_command_depends_on_variables_settings_jars_and_defaults(home: Path) -> None:
    first = digest_of(home, SETTINGS, VARIABLES)
    assert first == digest_of(home, SETTINGS, {**VARIABLES, "SHLVL": "2", "PWD": "/"})
    others = [digest_of(home, {"spark.driver.memory": "1g"}, VARIABLES)]
    others.append(digest_of(home, SETTINGS, {**VARIABLES, "JAVA_HOME": "/jre"}))
    (home / "conf/spark-defaults.conf").write_text("spark.driver.extraClassPath a.jar\n")
    others.append(digest_of(home, SETTINGS, VARIABLES))
    (home / "jars/a.jar").write_text("another")
    others.append(digest_of(home, SETTINGS, VARIABLES))
    assert len({first, *others}) == 5


def test_no_command_is_kept_where_a_script_sets_variables_or_files_cannot_be_read(home: Path, tmp_path: Path) -> None:
    (home / "conf/spark-defaults.conf").write_bytes(b"\xff")
    assert digest_of(home, SETTINGS, VARIABLES) == ""
    (home / "conf/spark-defaults.conf").unlink()
    assert digest_of(home, SETTINGS, VARIABLES) != ""
    (home / "conf/spark-env.sh").write_text("export X=$(date)")
    assert digest_of(home, SETTINGS, VARIABLES) == ""
    assert digest_of(tmp_path, SETTINGS, VARIABLES) == ""
    kept = KeptCommand(tmp_path / "work", "")
    kept.keep(os.getpid(), {})
    assert kept.take() is None


def test_the_script_starts_the_jvm_with_the_same_words_and_variables_and_arguments_of_its_own(tmp_path: Path) -> None:
    show = [sys.executable, "-c", "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ['ADDED']]))"]
    after = {**VARIABLES, "ADDED": "by 'a' script", "_": "/bin/java", "SHLVL": "3"}
    text = script_of([*show, *JAVA, SUBMIT, "--conf", "a=old"], VARIABLES, after)
    assert VARIABLES["AWS_SECRET_ACCESS_KEY"] not in text
    assert "SHLVL" not in text
    script = tmp_path / "script"
    script.write_text(text)
    script.chmod(0o700)
    reported = subprocess.run(
        ["spark-submit", "--conf", "a=new"], executable=script, check=True, stdout=subprocess.PIPE
    )
    assert json.loads(reported.stdout) == [[*JAVA, SUBMIT, "--conf", "a=new"], "by 'a' script"]
    assert script_of(["bash", "spark-submit"], {}, {}) == ""


def test_a_command_serves_one_start_unless_its_jvm_came_up(tmp_path: Path) -> None:
    kept = KeptCommand(tmp_path, "digest")
    command = [sys.executable, "-c", "print(flush=True); input()", SUBMIT, "--conf"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as jvm:
        assert jvm.stdout is not None
        jvm.stdout.readline()  # it is up, and no more the process that was to become it
        kept.keep(jvm.pid, os.environ)
        jvm.communicate(b"\n")
    taken = kept.take()
    assert taken is not None
    assert f'{SUBMIT} "$@"' in taken.read_text()
    assert taken.stat().st_mode & 0o777 == 0o700
    assert kept.take() is None
    kept.keep_again()
    assert KeptCommand(tmp_path, "another").take() is None
    assert KeptCommand(tmp_path, "digest").take(foreseen=True) is None
    assert KeptCommand(tmp_path, "digest").take() is not None


def test_the_arguments_that_are_foreseen_are_those_that_pyspark_has_whatever_a_variable_adds(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = tmp_path / "arguments"
    (home / "bin").mkdir()
    # It ends without having become a JVM, and PySpark says so.
    (home / "bin/spark-submit").write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{shown}\nexit 1\n')
    (home / "bin/spark-submit").chmod(0o700)
    monkeypatch.setenv("SPARK_HOME", str(home))
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    settings = {"spark.app.name": "a 'b", **SETTINGS}
    for submit in (None, "--deploy-mode cluster --jars 'a b.jar' pyspark-shell"):
        if submit is not None:
            monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", submit)
        with pytest.raises(PySparkRuntimeError):
            launching.launch(SparkConf(loadDefaults=False).setAll(list(settings.items())), "/nonexistent", frozenset())
        assert shown.read_text().splitlines() == arguments_of(settings)
        assert os.environ.get("PYSPARK_SUBMIT_ARGS") == submit


def test_the_jvm_runs_in_the_folder_of_before_the_script_wherever_the_script_goes(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = tmp_path / "folder"
    (home / "bin").mkdir()
    (home / "bin/spark-submit").write_text(f"#!/bin/sh\npwd >{shown}\nexit 1\n")
    (home / "bin/spark-submit").chmod(0o700)
    monkeypatch.setenv("SPARK_HOME", str(home))
    for folder in ("image", "scripts"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "image")
    held: Any = None  # it is asked for when the JVM runs
    process = session.Process("driver-1", held, lambda: None)
    monkeypatch.chdir(tmp_path / "scripts")
    config = driver_config("app", "main.py", Storage("s3://here/apps/orders"))
    environment = dataclasses.replace(Environment.read({}), work_directory=str(tmp_path / "work"))
    with pytest.raises(PySparkRuntimeError):
        session.prepare_context(config, environment, Progress(config), process)
    assert shown.read_text().strip() == str(tmp_path / "image")
    assert Path.cwd() == tmp_path / "scripts"


def test_a_kept_command_that_does_not_work_is_followed_by_sparks_own_way(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    class Gateway:
        proc = None

    def gateway(conf: Any, popen_kwargs: dict[str, Any]) -> Gateway:
        asked.append(popen_kwargs)
        if "executable" in popen_kwargs:
            raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
        return Gateway()

    class Conf:
        def getAll(self) -> list[tuple[str, str]]:  # noqa: N802 - Spark's name
            return [*SETTINGS.items(), ("spark.process", "7")]

    monkeypatch.setattr(launching, "launch_gateway", gateway)
    monkeypatch.setattr(launching, "_find_spark_home", lambda: str(home))
    name = f"launch-{digest_of(home, SETTINGS, os.environ)}"
    (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
    conf: Any = Conf()
    for _ in range(2):
        assert isinstance(launching.launch(conf, str(tmp_path), frozenset({"spark.process"})), Gateway)
    plain = {"cwd": None}
    assert asked == [{**plain, "executable": str(tmp_path / "launch.used")}, plain, plain]


def test_a_jvm_whose_connections_are_gone_is_given_the_time_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    class Dying:
        code: int | None = None

        def wait(self, seconds: float) -> int:
            self.code = -9
            return -9

        def poll(self) -> int | None:
            return self.code

    class Gateway:
        proc = Dying()

    monkeypatch.setattr(SparkContext, "_gateway", Gateway())
    assert session.jvm_exit_code() is None
    assert session.jvm_exit_code(connection_lost=True) == -9
