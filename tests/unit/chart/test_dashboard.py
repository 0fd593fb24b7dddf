"""The dashboard shows what is exported, and all that is about the work. Reads the chart's file; no helm."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from docs.generate_metrics import agent_metrics, operator_metrics

ROOT = Path(__file__).parents[3]
FILE = ROOT / "charts" / "tidegate" / "files" / "monitoring" / "dashboard.json"
NOT_SHOWN = {"tidegate_query_active", "tidegate_query_batch_id", "tidegate_query_input_rows_per_second"}
"""What others show as well."""


@pytest.fixture(scope="module")
def dashboard() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(FILE.read_text())
    return read


def expressions(dashboard: dict[str, Any]) -> list[str]:
    return [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]


def test_panels_show_metrics_that_are_exported_and_all_that_are_about_the_work(dashboard: dict[str, Any]) -> None:
    kinds = {metric.name: metric.kind for metric in (*operator_metrics(), *agent_metrics())}
    used = {name for expression in expressions(dashboard) for name in re.findall(r"\btidegate_\w+", expression)}
    bare = {re.sub(r"_(bucket|count|sum)$", "", n) if n not in kinds else n for n in used}
    assert bare - kinds.keys() == set(), f"no process exports these: correct the panels in {FILE.relative_to(ROOT)}"
    assert kinds.keys() - bare - NOT_SHOWN == set(), (
        f"add a panel, or a query of a panel that is there, to {FILE.relative_to(ROOT)}"
    )
    assert NOT_SHOWN & bare == set(), "these have a panel by now: take them out of NOT_SHOWN"


def test_panels_about_applications_follow_the_variables(dashboard: dict[str, Any]) -> None:
    labels = {metric.name: metric.labels for metric in (*operator_metrics(), *agent_metrics())}
    names = [variable["name"] for variable in dashboard["templating"]["list"]]
    assert names == ["datasource", "namespace", "app"]
    for expression in expressions(dashboard):
        first = re.findall(r"\btidegate_\w+", expression)[0]
        name = first if first in labels else re.sub(r"_(bucket|count)$", "", first)
        assert ('namespace=~"$namespace",app=~"$app"' in expression) == ("app" in labels.get(name, ())), expression


def test_panels_have_their_own_place_and_the_chosen_source(dashboard: dict[str, Any]) -> None:
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["datasource"]["uid"] == "${datasource}" for panel in panels if panel["type"] != "row")
    cells = [
        (x, y)
        for at in (panel["gridPos"] for panel in panels)
        for x, y in itertools.product(range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"]))
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) == 23
