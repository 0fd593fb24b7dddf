"""A cluster with the operator, S3 and Kafka, as end-to-end tests see it. Does I/O."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mypy_boto3_s3 import S3Client

from devcluster import kafka, s3
from devcluster.cluster import Cluster
from devcluster.environment import Environment
from tidegate_testing.apps import (
    CREDENTIALS,
    SCRIPTS,
    SCRIPTS_PATH,
    credentials,
    scripts,
    streaming_app,
    with_quick_java,
)
from tidegate_testing.kubectl import Kubectl
from tidegate_testing.operator_pods import SELECTOR
from tidegate_testing.waiting import CannotComeError, wait_for

PREFIX = "tidegate-e2e"
"""How every name begins that the tests give to what others could have under the same name."""
OPERATOR_NAMESPACE = PREFIX
HELD = "example.com/held"
"""The finalizer with which tests hold pods."""


@dataclass(frozen=True)
class World:
    """Everything a test needs to state a world and to look at it."""

    environment: Environment
    kubectl: Kubectl
    bucket: str
    script_files: Mapping[str, str]
    namespaces: set[str] = field(default_factory=set)
    """Those that the tests made."""
    buckets: set[str] = field(default_factory=set)
    """Those that the tests made, now or in a run that was cut off."""

    # --- applications -------------------------------------------------------------------------------------------------

    @property
    def storage(self) -> dict[str, Any]:
        """The storage group of a spec that works."""
        return {
            "uri": f"s3://{self.bucket}/apps",
            "endpoint": self.environment.s3_endpoint_pods,
            "pathStyleAccess": True,
            "credentialsSecretRef": {"name": CREDENTIALS},
        }

    def app(
        self, name: str, namespace: str, *, main: str, args: Sequence[str] = (), spec: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return a small application on this cluster's storage; ``spec`` is merged over it, group by group.

        Its state has two partitions: each takes a task of every batch, and what those do is no other with more.
        """
        image = self.environment.image_spark
        spec = {"state": {"partitions": 2}, **(spec or {})}
        made = streaming_app(name, namespace, image=image, storage=self.storage, main=main, args=args, spec=spec)
        return with_quick_java(made)

    def apply_sample(self, manifest: dict[str, Any]) -> None:
        """Apply a sample's application; its JVMs are a test's, too."""
        self.kubectl.apply(with_quick_java(manifest))

    def get_app(self, name: str, namespace: str) -> dict[str, Any]:
        """Return the StreamingApp; it must exist."""
        found = self.kubectl.get("sapp", name, namespace)
        assert found is not None, f"StreamingApp {namespace}/{name} does not exist"
        return found

    def status(self, name: str, namespace: str) -> dict[str, Any]:
        """Return the status of a StreamingApp that is to run.

        Raises:
            CannotComeError: it has failed for good, or come to its end, whatever is awaited of it.
        """
        status: dict[str, Any] = self.get_app(name, namespace).get("status", {})
        if status.get("phase") in ("Completed", "Failed"):
            raise CannotComeError(f"{namespace}/{name} does not run: {json.dumps(status)}")
        return status

    def delete_apps(self, namespace: str) -> None:
        """Delete every StreamSnapshot and StreamingApp of the namespace and wait for their end."""
        for each in self.kubectl.list("snap,sapp", namespace):
            self.kubectl.delete(each["kind"], each["metadata"]["name"], namespace)
        wait_for(f"{namespace} to be empty", lambda: not self.kubectl.list("snap,sapp", namespace), timeout=600)

    def delete_by_force(self, name: str, namespace: str) -> None:
        """Delete a StreamingApp as where somebody removes its finalizers; returns once it is gone."""
        self.kubectl.run("delete", "sapp", name, "-n", namespace, "--wait=false")
        self.kubectl.patch("sapp", name, namespace, {"metadata": {"finalizers": None}})
        wait_for(f"{name} to be gone", lambda: self.kubectl.get("sapp", name, namespace) is None, timeout=60)

    def events(self, app: str, namespace: str) -> set[str]:
        """Return the reasons of an application's events."""
        found = self.kubectl.list("events", namespace)
        return {event["reason"] for event in found if event["involvedObject"]["name"] == app}

    def await_events(self, app: str, namespace: str, *reasons: str) -> None:
        """Wait until an application has these: they are published after the status that they are about."""

        def reported() -> bool:
            assert set(reasons) <= self.events(app, namespace)
            return True

        wait_for(f"events {reasons} of {app}", reported, timeout=120)

    def make_namespace(self, name: str) -> None:
        """Have a namespace with scripts and credentials, held to the restricted pod security standard."""
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        metadata = {"name": name, "labels": labels}
        assert name.startswith(PREFIX), f"{name} could be somebody's: its applications and itself will be deleted"
        self.namespaces.add(name)
        self.kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        self.kubectl.apply(scripts(name, self.script_files))
        self.put_credentials(name)

    def put_credentials(
        self, namespace: str, *, name: str = CREDENTIALS, access_key: str = "", secret_key: str = ""
    ) -> None:
        """Have a credentials Secret; the right keys unless others are given."""
        right = self.environment
        secret = credentials(namespace, access_key or right.s3_access_key, secret_key or right.s3_secret_key, name)
        self.kubectl.apply(secret)

    def operator_crashes(self) -> list[str]:
        """Return the last words of operator processes that ended, unless they had lost the Lease: that may happen."""
        pods = self.kubectl.list("pods", OPERATOR_NAMESPACE, SELECTOR)
        assert pods, f"no operator pod in {OPERATOR_NAMESPACE}"
        ended = [pod for pod in pods if any(c["restartCount"] for c in pod["status"]["containerStatuses"])]
        check = ("logs", "-n", OPERATOR_NAMESPACE, "--previous", "--tail=40")
        words = [self.kubectl.run(*check, pod["metadata"]["name"]) for pod in ended]
        return [each for each in words if "part ended without leadership" not in each]

    # --- pods ---------------------------------------------------------------------------------------------------------

    def somebodys_pod(self, name: str, namespace: str, command: Sequence[str] = (), **spec: Any) -> dict[str, Any]:
        """Return a pod of the application's image that a restricted namespace takes, with its scripts; ``spec`` is
        merged over it."""
        container = {
            "name": "any",
            "image": self.environment.image_spark,
            "command": list(command),
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            "volumeMounts": [{"name": SCRIPTS, "mountPath": SCRIPTS_PATH, "readOnly": True}],
        }
        safe = {"runAsNonRoot": True, "runAsUser": 185, "seccompProfile": {"type": "RuntimeDefault"}}
        base = {
            "volumes": [{"name": SCRIPTS, "configMap": {"name": SCRIPTS}}],
            "securityContext": safe,
            "containers": [container],
            "terminationGracePeriodSeconds": 1,
        }
        metadata = {"name": name, "namespace": namespace}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**base, **spec}}

    def evict(self, name: str, namespace: str) -> None:
        """Have the API server evict a pod."""
        metadata = {"name": name, "namespace": namespace}
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
        self.kubectl.run("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))

    def hold(self, name: str, namespace: str) -> None:
        """Keep a pod by a finalizer, whoever deletes it."""
        self.kubectl.patch("pod", name, namespace, {"metadata": {"finalizers": [HELD]}})

    def release_pods(self, namespace: str) -> None:
        """Remove the finalizers of all pods that are held."""
        for pod in self.kubectl.list("pods", namespace):
            if HELD in pod["metadata"].get("finalizers", ()):
                self.kubectl.patch("pod", pod["metadata"]["name"], namespace, {"metadata": {"finalizers": None}})

    # --- storage ------------------------------------------------------------------------------------------------------

    @property
    def s3(self) -> S3Client:
        """A client of the object store, from outside of the cluster."""
        return s3.client(self.environment.s3_endpoint_host, self.environment.s3_keys)

    def make_bucket(self, name: str) -> None:
        """Have a bucket."""
        held = {bucket["Name"] for bucket in self.s3.list_buckets()["Buckets"]}
        assert name.startswith(PREFIX), f"{name} could be somebody's bucket, and will be deleted"
        self.buckets.add(name)
        if name not in held:
            self.s3.create_bucket(Bucket=name)

    def keys(self, app: str, namespace: str) -> list[str]:
        """Return the keys of the application's objects."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=f"apps/{namespace}/{app}/")
        # Keys with a slash at the end are directory markers of Hadoop's connector, and hold nothing.
        return [o["Key"] for page in pages for o in page.get("Contents", []) if not o["Key"].endswith("/")]

    def snapshot_keys(self, app: str, namespace: str) -> list[str]:
        """Return the keys of the application's snapshots, without the catalog that outlives them."""
        keys = self.keys(app, namespace)
        return [k for k in keys if ("/snapshots/" in k or "/objects/" in k) and not k.endswith("/catalog.json")]

    def read(self, key: str) -> str:
        """Return an object's text."""
        return self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read().decode()

    # --- taking away --------------------------------------------------------------------------------------------------

    def remove_apps(self) -> None:
        """Delete every application that the tests left, while there is an operator that lets them go."""
        for name in sorted(self.namespaces):
            self.delete_apps(name)

    def remove_namespaces(self) -> None:
        """Delete the namespaces of the tests and of the operator, and wait for their end."""
        for name in sorted({*self.namespaces, OPERATOR_NAMESPACE}):
            self.kubectl.run("delete", "namespace", name, "--ignore-not-found", "--timeout=120s", timeout=130)

    def remove_buckets(self) -> None:
        """Delete the buckets that the tests made, with all objects."""
        for name in sorted(self.buckets):
            self.remove_bucket(name)

    def remove_bucket(self, name: str) -> None:
        """Delete a bucket with all objects; none is fine."""
        if name not in {bucket["Name"] for bucket in self.s3.list_buckets()["Buckets"]}:
            return
        for page in self.s3.get_paginator("list_objects_v2").paginate(Bucket=name):
            for item in page.get("Contents", []):
                self.s3.delete_object(Bucket=name, Key=item["Key"])
        self.s3.delete_bucket(Bucket=name)

    # --- faults of the surroundings -----------------------------------------------------------------------------------

    def stop_kafka(self) -> None:
        """Stop the broker; what it holds stays."""
        kafka.stop(self._own())

    def start_kafka(self) -> None:
        """Start the broker again, unless it runs."""
        kafka.up(self._own())

    def _own(self) -> Cluster:
        assert self.environment.cluster is not None, "the services of a foreign cluster are not ours to stop"
        return self.environment.cluster

    def diagnosis(self, namespace: str) -> str:
        """Return what one looks at when a test fails: resources, pods, events, and the operator's last lines."""
        checks = (
            ["get", "sapp,snap,pods", "-n", namespace, "-o", "wide"],
            ["get", "events", "-n", namespace, "--sort-by=.lastTimestamp"],
            ["logs", "-n", OPERATOR_NAMESPACE, "-l", SELECTOR, "--tail=40"],
        )
        base = [str(self.kubectl.binary), "--kubeconfig", str(self.kubectl.kubeconfig)]
        seen = [subprocess.run([*base, *check], capture_output=True, text=True, check=False) for check in checks]
        return "\n\n".join(
            f"kubectl {' '.join(check)}\n{s.stdout}{s.stderr}" for check, s in zip(checks, seen, strict=True)
        )
