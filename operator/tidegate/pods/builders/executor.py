"""Builds the executors' pod template, which Spark's Kubernetes backend completes. No I/O.

Spark itself sets name, namespace, image, pull policy, restart policy, ServiceAccount, requests, limits, the argument
``executor`` and the SPARK_* variables.
"""

from __future__ import annotations

from typing import Any

from tidegate.api.streaming_app import StreamingApp
from tidegate.pods.builders import pod_parts
from tidegate.pods.builders.cpu_limits import executor_limit
from tidegate.pods.builders.pod_template import EXECUTOR_FIELD, lay_over
from tidegate.pods.builders.spark_auth import spark_auth_env, spark_auth_mounts, spark_auth_volumes
from tidegate.pods.records.metadata import labels
from tidegate.pods.records.names import EXECUTOR_CONTAINER, executor_prefix
from tidegate.pods.records.platform import Platform
from tidegate.pods.reserved.accounts import service_account
from tidegate_spark.contract.protocol import (
    ANNOTATION_APP_UID,
    EXECUTOR_CONFIG_VARIABLE,
    ROLE_EXECUTOR,
    ExecutorConfig,
    Storage,
    to_json,
)

# Executors talk to the driver, never to the API server.
_DEFAULTS = {"automountServiceAccountToken": False}


def build_executor_template(app: StreamingApp, epoch: int, storage: Storage, platform: Platform) -> dict[str, Any]:
    """Return the whole pod that Spark takes as a template for the executors of one epoch.

    Raises:
        SpecError: the user's template cannot be merged.
    """
    users = app.spec.executor.pod_template
    defaults = pod_parts.default_pod(platform, _DEFAULTS)
    pod, user_env = pod_parts.build_users_pod(app, EXECUTOR_CONTAINER, defaults, users, EXECUTOR_FIELD)
    owned = _owned(app, epoch, storage, platform, user_env)
    return {"apiVersion": "v1", "kind": "Pod", **lay_over(pod, owned, EXECUTOR_FIELD, owned=True)}


def build_executor_to_try(app: StreamingApp, epoch: int, storage: Storage, platform: Platform) -> dict[str, Any]:
    """Return a pod as Spark makes it of the template, for the API server to look at: Spark drops what it does not know.

    Without the ServiceAccount, which may not have been made yet; whether the pod is valid does not hang on it.

    Raises:
        SpecError: the user's template cannot be merged, or a value is no quantity.
    """
    template = build_executor_template(app, epoch, storage, platform)
    template["spec"] = {k: v for k, v in template["spec"].items() if k not in ("serviceAccountName", "serviceAccount")}
    application = app.spec.application
    container = {
        "name": EXECUTOR_CONTAINER,
        "image": application.image,
        "imagePullPolicy": application.image_pull_policy,
        "resources": pod_parts.resource_requirements("executor", app.spec.executor.resources),
    }
    metadata = {"name": f"{executor_prefix(app.metadata.name, epoch)}-exec-1", "namespace": app.metadata.namespace}
    owned = {"metadata": metadata, "spec": {"restartPolicy": "Never", "containers": [container]}}
    return lay_over(template, owned, EXECUTOR_FIELD, owned=True)


def _other_resources(app: StreamingApp) -> dict[str, Any]:
    """Return requests and limits that Spark leaves alone: it sets cpu and memory (BasicExecutorFeatureStep)."""
    whole = pod_parts.resource_requirements("executor", app.spec.executor.resources)
    others = {
        kind: {name: value for name, value in named.items() if name not in ("cpu", "memory")}
        for kind, named in whole.items()
    }
    return {"resources": {kind: named for kind, named in others.items() if named}} if any(others.values()) else {}


def _owned(
    app: StreamingApp, epoch: int, storage: Storage, platform: Platform, user_env: list[dict[str, Any]]
) -> dict[str, Any]:
    config = to_json(ExecutorConfig(app=app.metadata.name, epoch=epoch, storage=storage))
    env = [
        *pod_parts.owned_env(app, user_env, platform),
        *spark_auth_env(app),
        {"name": EXECUTOR_CONFIG_VARIABLE, "value": pod_parts.literal(config)},
    ]
    container = {
        "name": EXECUTOR_CONTAINER,
        "command": ["python3", "-m", "tidegate_spark.executor"],
        # The kubelet keeps the last output of a failed container, also of a killed one; it is redacted already.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "env": env,
        "volumeMounts": [*pod_parts.owned_mounts(app), *spark_auth_mounts(app)],
        **_other_resources(app),
    }
    volumes = [*pod_parts.owned_volumes(app), *spark_auth_volumes(app, epoch, platform)]
    spec: dict[str, Any] = {
        "containers": [container],
        "volumes": volumes,
        # Spark leaves a template's own `serviceAccount` alone; the API server goes by this one.
        "serviceAccountName": service_account(app),
    }
    if pod_parts.is_injected(app):
        spec["initContainers"] = pod_parts.runtime_init_containers(app, platform, executor_limit(app))
    if app.spec.application.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": secret.name} for secret in app.spec.application.image_pull_secrets]
    metadata = {
        "labels": labels(app.metadata.name, ROLE_EXECUTOR, epoch),
        "annotations": {ANNOTATION_APP_UID: app.metadata.uid},
    }
    return {"metadata": metadata, "spec": spec}
