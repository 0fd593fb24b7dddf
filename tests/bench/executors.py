"""How long one more executor takes from the wish until it is registered, beside one of a plain Spark application.

Both applications run the same script in the same image, which says how many executors there are, and when; the plain
one asks for the second by Spark's own call.
"""

import re
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devcluster.demo.kubernetes import CommandError
from tests.bench.reporting import say
from tests.bench.turns import turns
from tidegate_testing.apps import SCRIPTS as SCRIPTS_MAP
from tidegate_testing.apps import SCRIPTS_PATH
from tidegate_testing.live_cluster import LiveCluster, live_cluster
from tidegate_testing.waiting import wait_for

SCRIPT = "growing.py"
SCRIPTS = Path(__file__).parent / "scripts"
WAYS = TIDEGATE, PLAIN = "tidegate", "plain"
ACCOUNT = "plain-driver"
SETTLED_SECONDS = 10.0
"""Between the first executor and the wish for the second: the driver compiles its first batches until then."""
LIMIT_SECONDS = 300.0
_SEEN = re.compile(r"^executors (\d+) ([\d.]+)$", re.MULTILINE)
_ASKED = re.compile(r"^asked ([\d.]+)$", re.MULTILINE)


@dataclass(frozen=True)
class Starts:
    """What came of all trials."""

    results: dict[str, float]
    samples: dict[str, list[float]]


def starts(cluster: str, rounds: int) -> Starts:
    """Start a second executor so often in each way, in turns."""
    bucket = f"rescale-{int(time.time())}"
    files = {SCRIPT: (SCRIPTS / SCRIPT).read_text()}
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    with live_cluster(cluster, bucket=bucket, namespace="bench", files=files, say=say) as live:
        live.tools.apply(*_rights(live.namespace))
        for number, way in enumerate(turns(WAYS, rounds), 1):
            seconds[way].append(_by_tidegate(live, number) if way == TIDEGATE else _plainly(live, number))
            say(f"{number}: {way}: {seconds[way][-1]:.2f} s")
    return Starts(results(seconds), {f"executor_{way}": [round(each, 2) for each in seconds[way]] for way in WAYS})


def results(seconds: Mapping[str, list[float]]) -> dict[str, float]:
    """Return the medians of both ways and their ratio; pure."""
    medians = {way: statistics.median(seconds[way]) for way in WAYS}
    found = {"executor_start_ratio": medians[TIDEGATE] / medians[PLAIN]}
    return found | {f"executor_start_seconds_{way}": median for way, median in medians.items()}


def registered_at(log: str, executors: int) -> float:
    """Return when a driver's log first tells of so many executors, 0 if it does not; pure."""
    return next((float(at) for number, at in _SEEN.findall(log) if int(number) >= executors), 0.0)


def asked_at(log: str) -> float:
    """Return when a plain driver asked for the second one, 0 if it did not; pure."""
    found = _ASKED.search(log)
    return float(found[1]) if found else 0.0


def _by_tidegate(live: LiveCluster, number: int) -> float:
    app = f"grow-{number}"
    live.tools.apply(live.app(app, SCRIPT, []))
    _await_executors(live, f"{app}-driver", 1)
    time.sleep(SETTLED_SECONDS)
    asked = time.time()
    live.tools.ctl("scale", f"sapp/{app}", "-n", live.namespace, "--replicas=2")
    there = _await_executors(live, f"{app}-driver", 2)
    live.delete_app(app)
    return there - asked


def _plainly(live: LiveCluster, number: int) -> float:
    name = f"plain-{number}"
    live.tools.apply(_plain_pod(live, name))
    there = _await_executors(live, name, 2)
    asked = asked_at(_log(live, name))
    live.tools.ctl("delete", "pod", name, "-n", live.namespace, "--wait", timeout=LIMIT_SECONDS)
    return there - asked


def _await_executors(live: LiveCluster, pod: str, number: int) -> float:
    def probe() -> float:
        try:
            return registered_at(_log(live, pod), number)
        except CommandError as early:  # there is no pod yet, or no container of it
            raise AssertionError(str(early)) from early

    return wait_for(f"{number} executors of {pod}", probe, LIMIT_SECONDS, 0.5)


def _log(live: LiveCluster, pod: str) -> str:
    return str(live.tools.ctl("logs", pod, "-n", live.namespace))


def _rights(namespace: str) -> list[dict[str, Any]]:
    """Return what a plain driver may do: what Spark's documentation asks for."""
    metadata = {"name": ACCOUNT, "namespace": namespace}
    rbac = "rbac.authorization.k8s.io"
    things = ["pods", "services", "configmaps", "persistentvolumeclaims"]
    verbs = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]
    rule = {"apiGroups": [""], "resources": things, "verbs": verbs}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": ACCOUNT},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
        },
    ]


def _plain_pod(live: LiveCluster, name: str) -> dict[str, Any]:
    """Return a driver in client mode as Spark's documentation has it, with the same image and resources."""
    settings = {
        "spark.master": "k8s://https://kubernetes.default.svc:443",
        "spark.submit.deployMode": "client",
        "spark.driver.host": "$(POD_IP)",
        "spark.kubernetes.namespace": live.namespace,
        "spark.kubernetes.driver.pod.name": name,
        "spark.kubernetes.executor.podNamePrefix": name,
        "spark.kubernetes.container.image": live.site.image_spark,
        "spark.kubernetes.authenticate.serviceAccountName": ACCOUNT,
        "spark.kubernetes.authenticate.executor.serviceAccountName": ACCOUNT,
        "spark.executor.instances": "1",
        "spark.executor.memory": "512m",
        "spark.executor.memoryOverhead": "512m",
        "spark.kubernetes.executor.request.cores": "100m",
        "spark.ui.enabled": "false",
    }
    conf = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    container = {
        "name": "driver",
        "image": live.site.image_spark,
        "command": ["/opt/spark/bin/spark-submit", *conf, f"{SCRIPTS_PATH}/{SCRIPT}", str(SETTLED_SECONDS)],
        "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "resources": {"requests": {"cpu": "100m", "memory": "2Gi"}, "limits": {"memory": "2Gi"}},
        "volumeMounts": [{"name": "scripts", "mountPath": SCRIPTS_PATH}],
    }
    spec = {
        "serviceAccountName": ACCOUNT,
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [{"name": "scripts", "configMap": {"name": SCRIPTS_MAP}}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": live.namespace}, "spec": spec}
