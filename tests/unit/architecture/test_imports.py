"""The contracts on imports notice what they forbid: planted mistakes, in a copy of both packages. Writes files."""

import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LINT = Path(sys.executable).with_name("lint-imports")
DIRECTION = "Modules and packages beside each other import each other in one direction"
CLIENT = "Only tidegate.kube knows the Kubernetes client"
LAYERS = "Rooms of the operator import those below them"
PURE = "What decides and what builds is pure"
APART = "Autoscaling knows nothing of Kubernetes, nor of the operator around it"
PROTOCOL = "The operator knows only the protocol of the runtime"
RUNTIME = "The runtime never imports the operator"
WRITER = "Who writes control messages needs no Spark"
ROOMS = "The runtime's rooms import each other downwards"


@dataclass(frozen=True)
class Mistake:
    """Lines that are appended to modules of the copy, which are made where there are none."""

    contract: str
    said: str
    """What the contract says of it, among others."""
    lines: dict[str, str]
    also: frozenset[str] = frozenset()
    """Contracts that it breaks besides."""


MISTAKES = {
    "a slice that imports another one beside it": Mistake(
        LAYERS,
        "tidegate.control is not allowed to import tidegate.autoscaling",
        {"tidegate.control.rules.waiting": "import tidegate.autoscaling.algorithm.samples"},
    ),
    "a module that stands in no room": Mistake(LAYERS, "news", {"tidegate.news": "import enum"}),
    "a cycle of packages of the operator": Mistake(
        DIRECTION,
        "No cycles are allowed in tidegate.app.\n",
        {"tidegate.app.builders.driver": "import tidegate.app.rules.messages"},
    ),
    "a cycle inside a package, by an import inside a function": Mistake(
        DIRECTION,
        "No cycles are allowed in tidegate.app.rules.\n",
        {"tidegate.app.rules.pods.ends": "def late() -> None:\n    import tidegate.app.rules.plan"},
    ),
    "a cycle of a module and a package": Mistake(
        DIRECTION,
        "No cycles are allowed in tidegate.app.rules.\n",
        {"tidegate.app.rules.messages": "from tidegate.app.rules.pods import ends"},
    ),
    "a cycle of packages of the runtime": Mistake(
        DIRECTION,
        "No cycles are allowed in tidegate_spark.snapshots.\n",
        {"tidegate_spark.snapshots.catalog": "from tidegate_spark.snapshots.service import queue"},
    ),
    "a cycle far below, for types alone": Mistake(
        DIRECTION,
        "No cycles are allowed in tidegate_spark.control.channels.\n",
        {
            "tidegate_spark.control.channels.ports": (
                "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
                "    from tidegate_spark.control.channels.intake import Intake"
            )
        },
    ),
    "a cycle in a package that nobody has named": Mistake(
        DIRECTION,
        "No cycles are allowed in tidegate.engine.news.\n",
        {
            "tidegate.engine.news.__init__": '"""New."""',
            "tidegate.engine.news.one": "import tidegate.engine.news.two",
            "tidegate.engine.news.two": "import tidegate.engine.news.one",
        },
    ),
    "the Kubernetes client in a new module of the operator": Mistake(
        CLIENT, "tidegate.engine.news -> kubernetes", {"tidegate.engine.news": "from kubernetes import client"}
    ),
    "the Kubernetes client in the runtime": Mistake(
        CLIENT, "tidegate_spark.driver.driver -> kubernetes", {"tidegate_spark.driver.driver": "import kubernetes"}
    ),
    "I/O where things are decided": Mistake(
        PURE, "tidegate.app.rules.launch.launch -> socket", {"tidegate.app.rules.launch.launch": "import socket"}
    ),
    "a clock below what is decided": Mistake(
        PURE,
        "tidegate.app.rules.launch.launch -> tidegate.engine.news",
        {"tidegate.app.rules.launch.launch": "import tidegate.engine.news", "tidegate.engine.news": "import time"},
    ),
    "a watch below what is built, two modules away": Mistake(
        PURE,
        "tidegate.pods.records.names -> tidegate.engine.news",
        {
            "tidegate.pods.records.names": "import tidegate.engine.news",
            "tidegate.engine.news": "import tidegate.engine.older_news",
            "tidegate.engine.older_news": "import tidegate.kube.watch",
        },
    ),
    "the operator below autoscaling": Mistake(
        APART,
        "tidegate.autoscaling.algorithm.bounds -> tidegate.pods.records.names",
        {"tidegate.autoscaling.algorithm.bounds": "import tidegate.pods.records.names"},
    ),
    "more of the runtime than the protocol": Mistake(
        PROTOCOL,
        "tidegate.pods.records.names -> tidegate_spark.process.outcome",
        {"tidegate.pods.records.names": "import tidegate_spark.process.outcome"},
    ),
    "an import upwards among the rooms of the runtime, by a function": Mistake(
        ROOMS,
        "tidegate_spark.executors.leftovers -> tidegate_spark.control_writer",
        {"tidegate_spark.executors.leftovers": "def late() -> None:\n    import tidegate_spark.control_writer"},
        frozenset({DIRECTION}),
    ),
    "a module of the runtime that stands in no room": Mistake(
        ROOMS, "tidegate_spark.news", {"tidegate_spark.news": "import json"}
    ),
    "the operator below the runtime": Mistake(
        RUNTIME,
        "tidegate_spark.storage.claim.fence -> tidegate.version",
        {"tidegate_spark.storage.claim.fence": "import tidegate.version"},
    ),
    "Spark where control messages are written": Mistake(
        WRITER,
        "tidegate_spark.control_log.entries -> pyspark",
        {"tidegate_spark.control_log.entries": "def rows() -> None:\n    import pyspark"},
    ),
}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for folder in ("operator/tidegate", "spark_app/tidegate_spark"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def plant(copy: Path, lines: dict[str, str]) -> None:
    for module, text in lines.items():
        folder = "operator" if module.startswith("tidegate.") else "spark_app"
        path = copy / folder / f"{module.replace('.', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        with path.open("a") as file:
            file.write(f"\n\n{text}\n")


def lint(copy: Path) -> tuple[int, set[str], str]:
    """Return the exit code, the contracts that are broken, and what is said of them."""
    done = subprocess.run(
        [LINT, "--no-cache", "--no-logo"],
        cwd=copy,
        # Of this checkout nothing is to be found.
        env={"PYTHONPATH": f"{copy / 'operator'}:{copy / 'spark_app'}", "COLUMNS": "1000"},
        capture_output=True,
        text=True,
        check=False,
    )
    said = re.sub(r"\x1b\[\d*m", "", done.stdout)
    assert "Contracts: " in said, f"{said}{done.stderr}"
    return done.returncode, set(re.findall(r"^(.+?) BROKEN", said, re.MULTILINE)), said


def test_the_packages_as_they_are_break_no_contract(copy: Path) -> None:
    code, broken, said = lint(copy)
    assert (code, broken) == (0, set()), said


@pytest.mark.parametrize("name", MISTAKES)
def test_a_planted_mistake_breaks_its_contract(copy: Path, name: str) -> None:
    mistake = MISTAKES[name]
    plant(copy, mistake.lines)
    code, broken, said = lint(copy)
    assert (code, broken) == (1, {mistake.contract, *mistake.also}), said
    assert mistake.said in said


def test_each_contract_has_a_planted_mistake() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    assert {mistake.contract for mistake in MISTAKES.values()} == {each["name"] for each in settings["contracts"]}
