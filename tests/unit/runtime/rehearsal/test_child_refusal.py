"""No child process of a rehearsal starts Spark, whatever starts it; the rehearsal itself does. Spark's own scripts."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark
import pytest

from tidegate_spark.rehearsal.child_refusal import ChildRefusal

SUBMIT = ["bin/spark-submit", "--deploy-mode", "cluster", "job.py"]
JAVA = """#!/bin/sh
echo "java was started" >&2
exit 3
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Spark's folder, with its own scripts, a configuration, and a Java that says that it was started."""
    home = tmp_path / "spark"
    shutil.copytree(Path(pyspark.__file__).parent / "bin", home / "bin")
    for folder in ("jars", "conf", "jre/bin"):
        (home / folder).mkdir(parents=True)
    (home / "conf/spark-defaults.conf").write_text("spark.serializer x\n")
    (home / "conf/spark-env.sh").write_text('echo "environment of the image" >&2\n')
    (home / "jre/bin/java").write_text(JAVA)
    (home / "jre/bin/java").chmod(0o755)
    return home


@pytest.fixture
def variables(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "SPARK_HOME": str(home), "JAVA_HOME": str(home / "jre")}


def run(home: Path, command: list[str], variables: Mapping[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        [str(home / command[0]), *command[1:]], env=variables, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "command", [SUBMIT, ["bin/spark-class", "org.apache.spark.deploy.SparkSubmit"], ["bin/pyspark"], ["bin/spark-sql"]]
)
def test_a_child_is_refused_before_java_is_started(
    home: Path, variables: dict[str, str], tmp_path: Path, command: list[str]
) -> None:
    assert "java was started" in run(home, command, variables)[1]
    refusal = ChildRefusal(tmp_path / "work", home)
    refusal.begin(variables)
    assert not refusal.refused
    code, said = run(home, command, variables)
    assert (code, "java was started" in said, "no child process starts Spark in a rehearsal" in said) == (
        1,
        False,
        True,
    )
    assert refusal.refused


def test_a_child_of_a_python_worker_is_refused_though_sparks_java_has_read_its_own_file(
    home: Path, variables: dict[str, str], tmp_path: Path
) -> None:
    refusal = ChildRefusal(tmp_path / "work", home)
    refusal.begin(variables)
    of_java = {**variables, "SPARK_CONF_DIR": str(home / "conf"), "SPARK_ENV_LOADED": "1"}
    code, said = run(home, SUBMIT, {**of_java, **refusal.variables})
    assert (code, "java was started" in said, refusal.refused) == (1, False, True)


def test_a_child_that_runs_another_program_which_asks_for_spark_is_refused(
    home: Path, variables: dict[str, str], tmp_path: Path
) -> None:
    refusal = ChildRefusal(tmp_path / "work", home)
    refusal.begin(variables)
    program = f"import subprocess; subprocess.run(['sh', '-c', 'exec {home}/bin/spark-submit job.py'])"
    done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True, check=False)
    assert "java was started" not in done.stderr
    assert refusal.refused


@pytest.mark.parametrize("loaded", [{}, {"SPARK_ENV_LOADED": "1"}])
@pytest.mark.parametrize("named", [False, True])
def test_the_rehearsal_itself_starts_spark_with_the_configuration_of_the_image(
    home: Path, variables: dict[str, str], tmp_path: Path, named: bool, loaded: dict[str, str]
) -> None:
    variables |= loaded | ({"SPARK_CONF_DIR": str(home / "conf")} if named else {})
    refusal = ChildRefusal(tmp_path / "work", home)
    starter = refusal.begin(variables)
    own = subprocess.run([*SUBMIT], executable=starter, env=variables, capture_output=True, text=True, check=False)
    assert "java was started" in own.stderr
    assert ("environment of the image" in own.stderr) == (not loaded)
    assert not refusal.refused
    assert run(home, SUBMIT, variables)[0] == 1


def test_what_a_script_reads_in_the_folder_of_the_configuration_is_there(
    home: Path, variables: dict[str, str], tmp_path: Path
) -> None:
    ChildRefusal(tmp_path / "work", home).begin(variables)
    assert (Path(variables["SPARK_CONF_DIR"]) / "spark-defaults.conf").read_text() == "spark.serializer x\n"
