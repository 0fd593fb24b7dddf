"""A Prometheus in the namespaces of a development cluster, where it reaches pods as one in a pod would. Starts it.

Debian's build has no discovery of Kubernetes' pods. What that would find is written to a file instead, with the same
labels, so that the documented configuration does all the rest.
"""

import json
import re
import subprocess
import urllib.parse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from devcluster import prometheus
from devcluster.cluster import Cluster

PORT = 9099
_NAME = "prometheus"
TARGETS = "targets.json"
DOCUMENTED = Path(__file__).parents[3] / "docs" / "metrics.md"


def documented_configuration() -> dict[str, Any]:
    """Return the configuration that docs/metrics.md gives people, with a file in the place of Kubernetes' discovery."""
    (found,) = re.findall(r"```yaml\n(scrape_configs:.*?)```", DOCUMENTED.read_text(), re.DOTALL)
    read: dict[str, Any] = yaml.safe_load(found)
    for job in read["scrape_configs"]:
        assert job.pop("kubernetes_sd_configs") == [{"role": "pod"}]
        job["file_sd_configs"] = [{"files": [TARGETS], "refresh_interval": "1s"}]
    return read


def discovered(pods: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what Prometheus' discovery makes of pods: a target for each port, with the pod's labels. Pure."""
    found = []
    for pod in pods:
        meta, ip = pod["metadata"], pod.get("status", {}).get("podIP")
        labels = {
            "__meta_kubernetes_namespace": meta["namespace"],
            **{f"__meta_kubernetes_pod_label_{_word(k)}": v for k, v in meta.get("labels", {}).items()},
        }
        for port in (port for container in pod["spec"]["containers"] for port in container.get("ports", [])):
            own = {**labels, "__meta_kubernetes_pod_container_port_name": port.get("name", "")}
            found += [{"targets": [f"{ip}:{port['containerPort']}"], "labels": own}] if ip else []
    return found


def _word(label: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_]", "_", label)


@dataclass(frozen=True)
class Sample:
    """One series of an answer."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True)
class PrometheusServer:
    """Prometheus as a process beside the cluster's components; it ends with them."""

    cluster: Cluster

    def start(self, rules: Mapping[str, Any], interval: str = "2s") -> None:
        """Start it with the documented configuration and these rules, and wait until it is ready."""
        folder = self.cluster.folder / _NAME
        folder.mkdir(exist_ok=True)
        intervals = {"scrape_interval": interval, "evaluation_interval": interval}
        self.discover([])
        (folder / "rules.yaml").write_text(yaml.safe_dump(dict(rules)))
        whole = {"global": intervals, "rule_files": ["rules.yaml"], **documented_configuration()}
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(whole))
        command: list[str | Path] = [
            prometheus.program("prometheus"),
            f"--config.file={folder / 'prometheus.yaml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{PORT}",
        ]
        self.cluster.control.start(_NAME, command)
        self.cluster.control.until(_NAME, lambda: "Ready" in self._get("/-/ready"), timeout=60)

    def discover(self, pods: Iterable[Mapping[str, Any]]) -> None:
        """Have it scrape these pods from now on, and no others."""
        place = self.cluster.folder / _NAME / TARGETS
        place.with_suffix(".new").write_text(json.dumps(discovered(pods)))
        place.with_suffix(".new").rename(place)

    def stop(self) -> None:
        """End it."""
        self.cluster.control.stop(_NAME)

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
        command = self.cluster.enter("busybox", "wget", "-q", "-O", "-", f"http://127.0.0.1:{PORT}{path}")
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        if done.returncode != 0:
            raise OSError(f"{path}: {done.stderr.strip()}")
        return done.stdout
