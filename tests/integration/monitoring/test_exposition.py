"""What Prometheus is given: promtool finds no fault in its form, names or units. Runs promtool."""

import subprocess
from itertools import chain
from pathlib import Path

import yaml
from prometheus_client import generate_latest

from devcluster import prometheus
from docs.generate_metrics import agent_metrics, exercised_agent, exercised_operator, operator_metrics
from tidegate_testing.prometheus_server import TARGETS, documented_configuration


def lint(text: bytes) -> str:
    """Return promtool's words; none if there is nothing to say."""
    command = [str(prometheus.program("promtool")), "check", "metrics"]
    done = subprocess.run(command, input=text, capture_output=True, check=False)
    return (done.stdout + done.stderr).decode()


def test_promtool_finds_no_fault_in_the_operators_metrics() -> None:
    assert lint(generate_latest(exercised_operator())) == ""


def test_promtool_finds_no_fault_in_the_agents_metrics() -> None:
    assert lint(generate_latest(exercised_agent())) == ""


def test_promtool_does_find_faults() -> None:
    assert "counter metrics should have" in lint(b"# HELP x_rows X.\n# TYPE x_rows counter\nx_rows 1\n")


def test_promtool_takes_the_configuration_that_the_docs_give(tmp_path: Path) -> None:
    (tmp_path / TARGETS).write_text("[]")
    (tmp_path / "prometheus.yaml").write_text(yaml.safe_dump(documented_configuration()))
    command = [str(prometheus.program("promtool")), "check", "config", "prometheus.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_metric_has_one_owner() -> None:
    names = [metric.name for metric in chain(operator_metrics(), agent_metrics())]
    assert len(set(names)) == len(names)


def test_every_metric_is_tidegates_and_says_what_it_is() -> None:
    for metric in chain(operator_metrics(), agent_metrics()):
        assert metric.name.startswith("tidegate_")
        assert metric.help.endswith("."), metric.name
