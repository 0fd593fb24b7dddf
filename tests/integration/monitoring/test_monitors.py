"""ServiceMonitor, PodMonitor and dashboard: only on demand, and made for what is there. Runs helm."""

import re
from pathlib import Path
from typing import Any

import pytest

from docs.generate_metrics import agent_metrics, operator_metrics
from tidegate.app.builders.driver import build_driver_pod
from tidegate.pods.records.platform import Platform
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


def test_the_service_is_found_where_argo_cd_has_overwritten_its_label_of_the_release(helm: Helm) -> None:
    """Where Argo CD tracks by that label (the default before 3.0), it is its Application's name, on every object."""
    releases = [helm.render(CHART, name, "system", {"monitoring": {"enabled": True}}) for name in ("blue", "green")]
    for rendered in releases:
        (monitor,) = [o for o in rendered if o["kind"] == "ServiceMonitor"]
        tracked = [
            o["metadata"]["name"]
            for o in (*releases[0], *releases[1])
            if o["kind"] == "Service"
            and covers(
                monitor["spec"]["selector"]["matchLabels"],
                {**o["metadata"]["labels"], "app.kubernetes.io/instance": "argo-cds-application"},
            )
        ]
        assert tracked == [f"{monitor['metadata']['name']}-metrics"]


def test_the_pod_monitor_finds_driver_pods_and_their_port(objects: dict[str, dict[str, Any]]) -> None:
    monitor = objects["PodMonitor/tidegate-drivers"]["spec"]
    pod = build_driver_pod(app(), 1, 1, Platform("operator:1"))
    assert covers(monitor["selector"]["matchLabels"], pod["metadata"]["labels"])
    (container,) = [c for c in pod["spec"]["containers"] if c["name"] == "driver"]
    (endpoint,) = monitor["podMetricsEndpoints"]
    assert endpoint["port"] in [port["name"] for port in container["ports"]]
    assert monitor["namespaceSelector"] == {"any": True}
    # A driver's program decides what it answers: whose metrics they are, its pod says (test_discovery, the same rules).
    assert "honorLabels" not in endpoint
    assert endpoint["relabelings"] == [
        {"sourceLabels": ["__meta_kubernetes_pod_label_tidegate_dev_app"], "targetLabel": "app"}
    ]
    named, dropped = endpoint["metricRelabelings"]
    of_drivers = {metric.name for metric in agent_metrics()}
    of_the_operator = {metric.name for metric in operator_metrics()}
    assert (named["sourceLabels"], named["action"]) == (["__name__"], "keep")
    assert {name for name in of_drivers | of_the_operator if re.fullmatch(named["regex"], name)} == of_drivers
    assert dropped == {"regex": "exported_(namespace|app)", "action": "labeldrop"}


def test_drivers_are_looked_for_where_the_operator_runs_them(helm: Helm) -> None:
    values = {"watchNamespaces": ["team-a", "team-b"], "monitoring": {"enabled": True}}
    (monitor,) = [o for o in helm.render(CHART, "tidegate", "system", values) if o["kind"] == "PodMonitor"]
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": ["team-a", "team-b"]}


def test_a_prometheus_that_looks_into_a_monitors_own_namespace_alone_finds_drivers_by_one_in_each(helm: Helm) -> None:
    usual = render(helm)["PodMonitor/tidegate-drivers"]
    values = {"monitoring": {"enabled": True, "podMonitorNamespaces": ["team-a", "team-b"], "labels": {"x": "y"}}}
    found = [o for o in helm.render(CHART, "tidegate", "system", values) if o["kind"] == "PodMonitor"]
    assert [o["metadata"]["namespace"] for o in found] == ["team-a", "team-b"]
    assert {o["metadata"]["name"] for o in found} == {"tidegate-drivers"}
    for monitor in found:
        assert monitor["metadata"]["labels"]["x"] == "y"
        assert monitor["spec"] == {
            **usual["spec"],
            "namespaceSelector": {"matchNames": [monitor["metadata"]["namespace"]]},
        }


def test_labels_for_prometheus_are_on_what_prometheus_selects(helm: Helm) -> None:
    found = render(helm, labels={"release": "prometheus"})
    labelled = {o["kind"] for o in found.values() if o["metadata"].get("labels", {}).get("release") == "prometheus"}
    assert labelled == OF_PROMETHEUS


def test_the_dashboard_is_the_file_that_the_chart_has(objects: dict[str, dict[str, Any]]) -> None:
    (text,) = objects["ConfigMap/tidegate-dashboard"]["data"].values()
    assert text.strip() == (CHART / "files" / "monitoring" / "dashboard.json").read_text().strip()


def test_the_dashboard_is_where_and_how_grafanas_sidecar_looks_for_it(helm: Helm) -> None:
    settings = {"labels": {"dashboards": "yes"}, "namespace": "grafana", "annotations": {"folder": "Streaming"}}
    found = render(helm, dashboard=settings)["ConfigMap/tidegate-dashboard"]["metadata"]
    assert (found["namespace"], found["annotations"]) == ("grafana", {"folder": "Streaming"})
    assert covers({"dashboards": "yes", "grafana_dashboard": "1"}, found["labels"])
    assert "ConfigMap/tidegate-dashboard" not in render(helm, dashboard={"enabled": False})
