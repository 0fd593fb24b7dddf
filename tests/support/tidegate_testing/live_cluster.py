"""A development cluster with S3, Kafka and the operator as the chart installs it, ours to break. Starts processes."""

import contextlib
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from devcluster import environment, s3
from devcluster.apiclient import ApiClient, ApiRefusedError
from devcluster.cluster import Cluster
from devcluster.demo.kubernetes import Kubernetes
from devcluster.demo.setting_up import connect, image_digest
from devcluster.environment import Environment
from devcluster.kubeapi import kube_api
from tidegate_testing.apps import CREDENTIALS, credentials, scripts, streaming_app
from tidegate_testing.commit_log import CommitLog, LineageLogs
from tidegate_testing.operator_pods import SELECTOR
from tidegate_testing.waiting import wait_for

CHART = Path(__file__).parents[3] / "charts" / "tidegate"
RELEASE, OPERATOR_NAMESPACE = "tidegate", "tidegate-system"
APPS = "/apis/tidegate.dev/v1alpha1/namespaces/{}/streamingapps/{}"

Say = Callable[[str], None]


@dataclass(frozen=True)
class LiveCluster:
    """One cluster, with a namespace and a bucket for the applications of one run."""

    site: Environment
    cluster: Cluster
    tools: Kubernetes
    api: ApiClient
    namespace: str
    bucket: str

    def app(self, name: str, script: str, args: list[str], spec: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return an application that runs one of the run's scripts; ``spec`` is merged over it, group by group."""
        storage = {
            "uri": f"s3://{self.bucket}/apps",
            "endpoint": self.site.s3_endpoint_pods,
            "pathStyleAccess": True,
            "credentialsSecretRef": {"name": CREDENTIALS},
        }
        image, main = self.site.image_spark, f"script:{script}"
        return streaming_app(name, self.namespace, image=image, storage=storage, main=main, args=args, spec=spec)

    def commit_log(self, app: str, query: str) -> CommitLog:
        """Return where a query of an application keeps its batches, in the first lineage."""
        return CommitLog(self._lineages(app) / "1" / query)

    def lineage_logs(self, app: str, query: str) -> LineageLogs:
        """Return where a query of an application keeps its batches, in whatever lineage."""
        return LineageLogs(self._lineages(app), query)

    def status(self, app: str) -> dict[str, Any]:
        """Return an application's status; raise OSError if the API server does not answer."""
        found: dict[str, Any] = self.api.get(APPS.format(self.namespace, app)).get("status", {})
        return found

    def get(self, path: str) -> dict[str, Any] | None:
        """Return an object, None if there is none; raise OSError if the API server does not answer."""
        try:
            found: dict[str, Any] = self.api.get(path)
        except ApiRefusedError as refused:
            if refused.status == 404:
                return None
            raise
        return found

    def pod(self, name: str) -> dict[str, Any] | None:
        """Return a pod of the run's namespace, None if there is none."""
        return self.get(f"/api/v1/namespaces/{self.namespace}/pods/{name}")

    def pods(self, namespace: str, selector: str) -> list[dict[str, Any]]:
        """Return the pods that ``selector`` (plain text) chooses."""
        path = f"/api/v1/namespaces/{namespace}/pods?labelSelector={urllib.parse.quote(selector)}"
        found: list[dict[str, Any]] = self.api.get(path)["items"]
        return found

    def delete_app(self, name: str, timeout: float = 300) -> None:
        """Delete an application and wait until it and its pods are gone."""
        kube_api(self.cluster.kubeconfig).delete("sapp", name, self.namespace)
        path = APPS.format(self.namespace, name)
        wait_for(f"{name} to be gone", lambda: self.get(path) is None, timeout)
        selector = f"tidegate.dev/app={name}"
        wait_for(f"the pods of {name} to be gone", lambda: not self.pods(self.namespace, selector), timeout)

    def _lineages(self, app: str) -> Path:
        return self.cluster.folder / "s3" / "data" / self.bucket / "apps" / self.namespace / app / "lineages"

    def diagnosis(self, app: str) -> str:
        """Return what one looks at when something went wrong; never raises."""
        return self.tools.describe_trouble(app, self.namespace)


@contextlib.contextmanager
def live_cluster(
    name: str, *, bucket: str, namespace: str, files: Mapping[str, str], say: Say
) -> Iterator[LiveCluster]:
    """Bring a development cluster up with everything, or use the one that runs; take down only what was not up before.

    Args:
        name: the cluster's name.
        bucket: made for the run.
        namespace: of the applications; made unless it exists.
        files: the scripts that applications run, by name.
        say: told each step.
    """
    cluster = Cluster(name)
    ran_before = cluster.healthy()
    say(f"cluster {name}: {'in use as it runs' if ran_before else 'starting'}")
    try:
        site = environment.current(name, variables={})
        live = LiveCluster(site, cluster, connect(site), ApiClient(cluster.kubeconfig), namespace, bucket)
        say("chart")
        _install(live)
        s3.ensure_bucket(cluster, bucket)
        _prepare(live, files)
        yield live
    finally:
        if not ran_before:
            cluster.down()
            say(f"cluster {name} is down")


def _install(live: LiveCluster) -> None:
    repository, _, tag = live.site.image_operator.rpartition(":")
    # The tag stays the same whatever is built: without the digest an operator built again would not be started.
    annotations = {"tidegate.dev/image-digest": image_digest(live.site, live.site.image_operator)}
    values = {"image": {"repository": repository, "tag": tag}, "podAnnotations": annotations}
    live.tools.install_chart(RELEASE, CHART, OPERATOR_NAMESPACE, values, timeout=180)


def _prepare(live: LiveCluster, files: Mapping[str, str]) -> None:
    keys = live.site.s3_keys
    live.tools.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": live.namespace}})
    live.tools.apply(scripts(live.namespace, files), credentials(live.namespace, keys.access_key, keys.secret_key))


def scale_operator(live: LiveCluster, replicas: int) -> None:
    """Have so many operator pods, and wait until exactly those are there and ready."""
    deployment = f"/apis/apps/v1/namespaces/{OPERATOR_NAMESPACE}/deployments/{RELEASE}"
    live.tools.ctl("scale", f"deployment/{RELEASE}", "-n", OPERATOR_NAMESPACE, f"--replicas={replicas}")

    def there() -> bool:
        pods = live.pods(OPERATOR_NAMESPACE, SELECTOR)
        ready = live.api.get(deployment)["status"].get("readyReplicas", 0)
        return len(pods) == replicas and ready == replicas

    wait_for(f"{replicas} operator pods", there, 180)


def operator_replicas(live: LiveCluster) -> int:
    """Return how many operator pods the chart asked for."""
    deployment = live.api.get(f"/apis/apps/v1/namespaces/{OPERATOR_NAMESPACE}/deployments/{RELEASE}")
    return int(deployment["spec"]["replicas"])


def until_answers(live: LiveCluster, timeout: float = 120) -> None:
    """Wait until the API server serves requests; raise AssertionError after ``timeout`` seconds."""
    wait_for("the API server", partial(_answers, live), timeout, 0.1)


def _answers(live: LiveCluster) -> bool:
    try:
        return live.api.ready()
    except OSError:
        return False
