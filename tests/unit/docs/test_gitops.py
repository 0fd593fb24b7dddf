"""The health check for Argo CD judges by the conditions that the operator writes, for every kind. Reads the page."""

import re
from pathlib import Path
from typing import Any

import yaml

from tidegate.engine.rules.health import Health

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "gitops.md").read_text()
OF_ARGO_CD = {Health.READY: "Healthy", Health.RECONCILING: "Progressing", Health.STALLED: "Degraded"}


def checks() -> dict[str, str]:
    """Return the script of each kind."""
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    found: dict[str, Any] = yaml.safe_load(block)
    return {name.removeprefix("resource.customizations.health."): script for name, script in found.items()}


def test_each_kind_has_the_same_health_check() -> None:
    crds = [yaml.safe_load(path.read_text())["spec"] for path in (ROOT / "crds").glob("*.yaml")]
    assert checks().keys() == {f"{crd['group']}_{crd['names']['kind']}" for crd in crds}, (
        "docs/gitops.md has a health check for each kind of crds/, and no other"
    )
    assert len(set(checks().values())) == 1, (
        "the health checks in docs/gitops.md differ: write the same script for each kind"
    )


def test_each_condition_that_can_be_true_has_a_meaning() -> None:
    (script,) = set(checks().values())
    (table,) = re.findall(r"means = \{(.*)\}", script)
    assert dict(re.findall(r'(\w+) = "(\w+)"', table)) == {health.value: word for health, word in OF_ARGO_CD.items()}, (
        "`means` in docs/gitops.md gives each condition of engine/rules/health.py the word of Argo CD in OF_ARGO_CD"
    )


def test_an_edit_that_was_not_seen_yet_is_on_its_way() -> None:
    (script,) = set(checks().values())
    before, _, _ = script.partition("local means")
    assert 'status = "Progressing"' in before
    assert "obj.status.observedGeneration ~= obj.metadata.generation" in before
