"""The documented configuration, in a real Prometheus, finds operators and drivers and nothing else. Runs processes.

The pods are made up: a small server shows their metrics where the API server would, by the paths that lead to pods.
"""

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest

from devcluster import tools
from docs.generate_metrics import exercised_agent, exercised_operator
from tidegate_testing.kubectl import Kubectl, write_kubeconfig
from tidegate_testing.prometheus_server import PrometheusServer
from tidegate_testing.waiting import wait_for

PLACE = "elsewhere"
OPERATOR = {"app.kubernetes.io/name": "tidegate"}
DRIVER = {"tidegate.dev/role": "driver", "tidegate.dev/app": "orders"}
FORGED = b'tidegate_leader 1\ntidegate_app_phase{namespace="shop",app="bills",phase="Failed"} 1\n'


def pod(name: str, ip: str, labels: dict[str, str], **ports: int) -> dict[str, Any]:
    listed = [{"name": port, "containerPort": number} for port, number in ports.items()]
    metadata = {"name": name, "namespace": PLACE, "labels": labels}
    return {"metadata": metadata, "spec": {"containers": [{"ports": listed}]}, "status": {"podIP": ip}}


PODS = [
    pod("tidegate-a", "10.0.0.1", OPERATOR, metrics=8080),
    pod("tidegate-b", "10.0.0.2", OPERATOR, metrics=8080),
    pod("orders-driver", "10.0.0.3", DRIVER, status=8090, command=8091),
    pod("orders-e1-exec-1", "10.0.0.4", {"tidegate.dev/role": "executor"}, status=8090),
    pod("database", "10.0.0.5", {"app.kubernetes.io/name": "database"}, metrics=8080),
    pod("waiting-driver", "", DRIVER, status=8090),
]
SHOWN = {
    "tidegate-a:8080": generate_latest(exercised_operator()),
    "tidegate-b:8080": generate_latest(exercised_operator()),
    "orders-driver:8090": generate_latest(exercised_agent()) + FORGED,
}


class PodsBehindAnApiServer(http.server.BaseHTTPRequestHandler):
    """Answers for pods, by the API server's path to them."""

    def do_GET(self) -> None:
        name = self.path.removeprefix(f"/api/v1/namespaces/{PLACE}/pods/").removesuffix("/proxy/metrics")
        self.send_response(200 if name in SHOWN else 404)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(SHOWN.get(name, b""))

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), PodsBehindAnApiServer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield write_kubeconfig(tmp_path, f"http://127.0.0.1:{server.server_address[1]}")
    server.shutdown()
    thread.join()
    server.server_close()


def test_operators_and_drivers_are_asked_and_nobody_else(kubeconfig: Path, tmp_path: Path) -> None:
    server = PrometheusServer(Kubectl(tools.program("kubectl"), kubeconfig), tmp_path)
    try:
        server.start({"groups": []}, interval="1s")
        server.discover(PODS)
        wait_for("all answers", lambda: all_are_asked(server), timeout=180)
    finally:
        server.stop()


def all_are_asked(server: PrometheusServer) -> bool:
    """All are up at once: an answer that comes too late for a scrape is a gap for it."""
    assert server.value("sum(up)") == 3
    asked = {(target["labels"]["job"], target["labels"]["instance"]) for target in server.targets()}
    assert asked == {
        ("tidegate-operator", "10.0.0.1:8080"),
        ("tidegate-operator", "10.0.0.2:8080"),
        ("tidegate-drivers", "10.0.0.3:8090"),
    }
    # The application's, not that of the pod that was asked.
    epochs = server.query("tidegate_app_epoch")
    assert {(sample.labels["namespace"], sample.labels["instance"]) for sample in epochs} == {
        ("shop", "10.0.0.1:8080"),
        ("shop", "10.0.0.2:8080"),
    }
    # A driver's are its pod's, whatever it says, and it has none of the operator's.
    driver = server.query('{instance="10.0.0.3:8090",__name__=~"tidegate_.+"}')
    assert {(sample.labels["namespace"], sample.labels["app"]) for sample in driver} == {(PLACE, "orders")}
    assert not any(sample.labels["__name__"].startswith(("tidegate_leader", "tidegate_app")) for sample in driver)
    assert not any(name.startswith("exported_") for sample in driver for name in sample.labels)
    return True
