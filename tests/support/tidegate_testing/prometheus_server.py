"""A Prometheus on this machine that knows the pods of any cluster: it asks them through the API server. Starts it.

Debian's build has no discovery of Kubernetes' pods. What that would find is written to a file instead, with the same
labels, so that the documented configuration does all the rest.
"""

import json
import re
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from devcluster import prometheus
from devcluster.control import free_port
from tidegate_testing.kubectl import Kubectl
from tidegate_testing.waiting import wait_for

TARGETS = "targets.json"
PODS = "/api/v1/namespaces/{}/pods"
DOCUMENTED = Path(__file__).parents[3] / "docs" / "metrics.md"


def documented_configuration() -> dict[str, Any]:
    """Return the configuration that docs/metrics.md gives people, with a file in the place of Kubernetes' discovery."""
    (found,) = re.findall(r"```yaml\n(scrape_configs:.*?)```", DOCUMENTED.read_text(), re.DOTALL)
    read: dict[str, Any] = yaml.safe_load(found)
    for job in read["scrape_configs"]:
        assert job.pop("kubernetes_sd_configs") == [{"role": "pod"}]
        job["file_sd_configs"] = [{"files": [TARGETS], "refresh_interval": "1s"}]
    return read


def discovered(pods: Iterable[Mapping[str, Any]], proxy: str) -> list[dict[str, Any]]:
    """Return what Prometheus' discovery makes of pods: a target for each port, with the pod's labels. Pure.

    Args:
        pods: as the API server shows them.
        proxy: address of a way to the API server; each target is asked there, by the path that leads to its pod.
    """
    found = []
    for pod in pods:
        meta, ip = pod["metadata"], pod.get("status", {}).get("podIP")
        labels = {
            "__meta_kubernetes_namespace": meta["namespace"],
            **{f"__meta_kubernetes_pod_label_{_word(k)}": v for k, v in meta.get("labels", {}).items()},
        }
        for port in (port for container in pod["spec"]["containers"] for port in container.get("ports", [])):
            number = port["containerPort"]
            own = {
                "__meta_kubernetes_pod_container_port_name": port.get("name", ""),
                "__metrics_path__": f"{PODS.format(meta['namespace'])}/{meta['name']}:{number}/proxy/metrics",
                "instance": f"{ip}:{number}",
            }
            found += [{"targets": [proxy], "labels": {**labels, **own}}] if ip else []
    return found


def _word(label: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_]", "_", label)


@dataclass(frozen=True)
class Sample:
    """One series of an answer."""

    labels: Mapping[str, str]
    value: float


class PrometheusServer:
    """Prometheus, and beside it the proxy that leads to the pods."""

    def __init__(self, kubectl: Kubectl, folder: Path) -> None:
        """Prepare; ``folder`` is where both keep what they have."""
        self._kubectl, self._folder = kubectl, folder
        self._port, self._proxy = free_port(), free_port()
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, rules: Mapping[str, Any], interval: str = "2s") -> None:
        """Start it with the documented configuration and these rules, and wait until it is ready."""
        folder, kubectl = self._folder, self._kubectl
        intervals = {"scrape_interval": interval, "evaluation_interval": interval}
        self.discover([])
        (folder / "rules.yaml").write_text(yaml.safe_dump(dict(rules)))
        whole = {"global": intervals, "rule_files": ["rules.yaml"], **documented_configuration()}
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(whole))
        self._run("proxy", [kubectl.binary, "--kubeconfig", kubectl.kubeconfig, "proxy", f"--port={self._proxy}"])
        command: list[str | Path] = [
            prometheus.program("prometheus"),
            f"--config.file={folder / 'prometheus.yaml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self._port}",
        ]
        self._run("prometheus", command)
        wait_for("Prometheus", self._is_ready, timeout=180, interval=0.5)

    def discover(self, pods: Iterable[Mapping[str, Any]]) -> None:
        """Have it scrape these pods from now on, and no others."""
        place = self._folder / TARGETS
        place.with_suffix(".new").write_text(json.dumps(discovered(pods, f"127.0.0.1:{self._proxy}")))
        place.with_suffix(".new").rename(place)

    def stop(self) -> None:
        """End both."""
        for process in reversed(self._processes):
            process.terminate()
            process.wait(timeout=180)

    def _is_ready(self) -> bool:
        try:
            return "Ready" in self._get("/-/ready")
        except OSError:
            return False

    def _run(self, name: str, command: Sequence[str | Path]) -> None:
        with (self._folder / f"{name}.log").open("wb") as log:
            started = subprocess.Popen(
                [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self._processes.append(started)

    def query(self, expression: str) -> list[Sample]:
        """Return what an expression is now."""
        result = self._api(f"/api/v1/query?query={urllib.parse.quote(expression)}")["result"]
        return [Sample(each["metric"], float(each["value"][1])) for each in result]

    def value(self, expression: str) -> float | None:
        """Return the value of an expression with at most one series; None if it has none."""
        found = self.query(expression)
        assert len(found) <= 1, f"{expression}: {found}"
        return found[0].value if found else None

    def targets(self) -> list[dict[str, Any]]:
        """Return what is scraped."""
        found: list[dict[str, Any]] = self._api("/api/v1/targets?state=active")["activeTargets"]
        return found

    def rules(self) -> list[dict[str, Any]]:
        """Return the rules and how they do."""
        return [rule for group in self._api("/api/v1/rules")["groups"] for rule in group["rules"]]

    def _api(self, path: str) -> dict[str, Any]:
        answer = json.loads(self._get(path))
        assert answer["status"] == "success", answer
        data: dict[str, Any] = answer["data"]
        return data

    def _get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=20) as answer:
            text: bytes = answer.read()
            return text.decode()
