"""The alerts as the chart renders them: promtool takes them, and tests when each fires. Runs helm and promtool."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster import prometheus
from docs.generate_metrics import agent_metrics, operator_metrics
from tidegate_testing.helm import Helm, HelmError

ROOT = Path(__file__).parents[3]
CHART = ROOT / "charts" / "tidegate"
TESTS: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("alerts.test.yaml").read_text())
RUNBOOK = (ROOT / "docs" / "alerts.md").read_text()


def rendered_rules(helm: Helm, **rules: Any) -> dict[str, Any]:
    """Return the rule file that is in the chart's PrometheusRule."""
    values = {"monitoring": {"enabled": True, "rules": rules}}
    (rule,) = [o for o in helm.render(CHART, "tidegate", "system", values) if o["kind"] == "PrometheusRule"]
    return {"groups": rule["spec"]["groups"]}


def alerts_of(rules: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {rule["alert"]: rule for group in rules["groups"] for rule in group["rules"]}


@pytest.fixture(scope="module")
def rules(helm: Helm) -> dict[str, Any]:
    return rendered_rules(helm)


def promtool(folder: Path, *arguments: str) -> str:
    command = [str(prometheus.program("promtool")), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_promtool_takes_the_rendered_rules(rules: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules))
    assert f"{len(alerts_of(rules))} rules found" in promtool(tmp_path, "check", "rules", "rules.yaml")


def test_each_alert_fires_in_its_world_and_in_no_other(rules: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules))
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], **TESTS}))
    promtool(tmp_path, "test", "rules", "tests.yaml")


def test_every_alert_has_a_world_in_which_it_fires_and_one_in_which_it_does_not(rules: dict[str, Any]) -> None:
    cases = [case for test in TESTS["tests"] for case in test["alert_rule_test"]]
    assert {case["alertname"] for case in cases if case["exp_alerts"]} == alerts_of(rules).keys()
    quiet = {case["alertname"] for case in cases if not case["exp_alerts"]}
    # Its test has series of operators and methods for which it does not fire.
    assert alerts_of(rules).keys() - quiet == {"TidegateApiErrors"}


def test_every_alert_says_what_is_wrong_and_has_a_runbook(rules: dict[str, Any]) -> None:
    for name, rule in alerts_of(rules).items():
        assert rule["labels"]["severity"] in ("critical", "warning"), name
        assert rule["annotations"].keys() == {"summary", "description"}, name
        assert f"| [{name}](#{name.lower()}) | {rule['labels']['severity']} |" in RUNBOOK
    assert re.findall(r"^## (\w+)$", RUNBOOK, re.MULTILINE) == list(alerts_of(rules))


def test_alerts_look_at_metrics_that_are_exported(rules: dict[str, Any]) -> None:
    known = {metric.name for metric in (*operator_metrics(), *agent_metrics())}
    used = {name for rule in alerts_of(rules).values() for name in re.findall(r"\btidegate_\w+", rule["expr"])}
    assert used - known == set()


def test_alerts_can_be_left_out_labelled_and_pointed_to_a_runbook(helm: Helm, tmp_path: Path) -> None:
    found = rendered_rules(
        helm,
        disabled=["TidegateAppStalled"],
        labels={"team": "streams", "severity": "page"},
        runbookUrl="https://wiki.example/tidegate/alerts",
    )
    alerts = alerts_of(found)
    assert "TidegateAppStalled" not in alerts
    assert alerts["TidegateAppFailed"]["labels"] == {"team": "streams", "severity": "page"}
    url = "https://wiki.example/tidegate/alerts#tidegateappfailed"
    assert alerts["TidegateAppFailed"]["annotations"]["runbook_url"] == url
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(found))
    promtool(tmp_path, "check", "rules", "rules.yaml")


def test_a_group_without_alerts_is_left_out(helm: Helm, rules: dict[str, Any]) -> None:
    of_the_operator, *others = rules["groups"]
    left = rendered_rules(helm, disabled=[rule["alert"] for rule in of_the_operator["rules"]])
    assert [group["name"] for group in left["groups"]] == [group["name"] for group in others]


def test_a_misspelt_alert_is_refused(helm: Helm) -> None:
    with pytest.raises(HelmError, match="disabled"):
        rendered_rules(helm, disabled=["TidegateAppStaled"])
