"""ServiceMonitor, PodMonitor and dashboard: only on demand, and made for what is there. Runs helm."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from docs.generate_metrics import agent_metrics, operator_metrics
from tidegate.resources.driver import build_driver_pod
from tidegate.resources.platform import Platform
from tidegate_testing.helm import Helm
from tidegate_testing.values import app

CHART = Path(__file__).parents[3] / "charts" / "tidegate"
OF_PROMETHEUS = {"ServiceMonitor", "PodMonitor", "PrometheusRule"}


def render(helm: Helm, **monitoring: Any) -> dict[str, dict[str, Any]]:
    """Return what the chart makes with monitoring, by kind and name."""
    objects = helm.render(CHART, "tidegate", "system", {"monitoring": {"enabled": True, **monitoring}})
    return {f"{o['kind']}/{o['metadata']['name']}": o for o in objects}


@pytest.fixture(scope="module")
def objects(helm: Helm) -> dict[str, dict[str, Any]]:
    return render(helm)


@pytest.fixture(scope="module")
def dashboard(objects: dict[str, dict[str, Any]]) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(objects["ConfigMap/tidegate-dashboard"]["data"]["tidegate.json"])
    return read


def covers(selector: dict[str, str], labels: dict[str, str]) -> bool:
    return selector.items() <= labels.items()


def test_nothing_of_it_is_made_unless_asked_for(helm: Helm) -> None:
    made = {o["kind"] for o in helm.render(CHART, "tidegate", "system")}
    assert made & (OF_PROMETHEUS | {"ConfigMap", "Service"}) == set()


def test_the_chart_with_everything_has_no_fault(helm: Helm) -> None:
    values = {
        "watchNamespaces": ["team-a"],
        "monitoring": {
            "enabled": True,
            "labels": {"release": "prometheus"},
            "interval": "1m30s",
            "rules": {"labels": {"team": "streams"}, "disabled": ["TidegateApiErrors"]},
            "dashboard": {"annotations": {"grafana_folder": "Streaming"}, "namespace": "grafana"},
        },
    }
    assert "0 chart(s) failed" in helm.run("lint", "--strict", str(CHART), values=values)


def test_the_service_monitor_finds_the_operators_service_and_its_port(objects: dict[str, dict[str, Any]]) -> None:
    service, monitor = objects["Service/tidegate-metrics"], objects["ServiceMonitor/tidegate"]
    assert covers(monitor["spec"]["selector"]["matchLabels"], service["metadata"]["labels"])
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": [service["metadata"]["namespace"]]}
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]
    pod = objects["Deployment/tidegate"]["spec"]["template"]
    assert covers(service["spec"]["selector"], pod["metadata"]["labels"])
    # Otherwise Prometheus would put the operator's namespace in the place of the application's.
    assert endpoint["honorLabels"] is True


def test_the_pod_monitor_finds_driver_pods_and_their_port(objects: dict[str, dict[str, Any]]) -> None:
    monitor = objects["PodMonitor/tidegate-drivers"]["spec"]
    pod = build_driver_pod(app(), 1, 1, Platform("operator:1"))
    assert covers(monitor["selector"]["matchLabels"], pod["metadata"]["labels"])
    (container,) = [c for c in pod["spec"]["containers"] if c["name"] == "driver"]
    (endpoint,) = monitor["podMetricsEndpoints"]
    assert endpoint["port"] in [port["name"] for port in container["ports"]]
    assert monitor["namespaceSelector"] == {"any": True}


def test_drivers_are_looked_for_where_the_operator_runs_them(helm: Helm) -> None:
    values = {"watchNamespaces": ["team-a", "team-b"], "monitoring": {"enabled": True}}
    (monitor,) = [o for o in helm.render(CHART, "tidegate", "system", values) if o["kind"] == "PodMonitor"]
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": ["team-a", "team-b"]}


def test_labels_for_prometheus_are_on_what_prometheus_selects(helm: Helm) -> None:
    found = render(helm, labels={"release": "prometheus"})
    labelled = {o["kind"] for o in found.values() if o["metadata"].get("labels", {}).get("release") == "prometheus"}
    assert labelled == OF_PROMETHEUS


def test_the_dashboard_is_where_and_how_grafanas_sidecar_looks_for_it(helm: Helm) -> None:
    settings = {"labels": {"dashboards": "yes"}, "namespace": "grafana", "annotations": {"folder": "Streaming"}}
    found = render(helm, dashboard=settings)["ConfigMap/tidegate-dashboard"]["metadata"]
    assert (found["namespace"], found["annotations"]) == ("grafana", {"folder": "Streaming"})
    assert covers({"dashboards": "yes", "grafana_dashboard": "1"}, found["labels"])
    assert "ConfigMap/tidegate-dashboard" not in render(helm, dashboard={"enabled": False})


# --- the dashboard ----------------------------------------------------------------------------------------------------


def expressions(dashboard: dict[str, Any]) -> list[str]:
    return [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]


def test_panels_show_metrics_that_are_exported_and_all_that_are_about_the_work(dashboard: dict[str, Any]) -> None:
    kinds = {metric.name: metric.kind for metric in (*operator_metrics(), *agent_metrics())}
    used = {name for expression in expressions(dashboard) for name in re.findall(r"\btidegate_\w+", expression)}
    bare = {re.sub(r"_(bucket|count|sum)$", "", n) if n not in kinds else n for n in used}
    assert bare - kinds.keys() == set()
    assert kinds.keys() - bare == {
        "tidegate_query_active",
        "tidegate_query_batch_id",
        "tidegate_query_input_rows_per_second",
    }


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
