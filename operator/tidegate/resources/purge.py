"""The pod that removes the storage of a deleted application. No I/O."""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.model.streaming_app import Driver, Executor, StreamingApp
from tidegate.resources import pod_parts
from tidegate.resources.driver_config import build_driver_config, service_account
from tidegate.resources.metadata import labels, owner_reference
from tidegate.resources.names import PURGE_CONTAINER, purge_pod_name
from tidegate.resources.platform import Platform
from tidegate_spark.protocol import ANNOTATION_APP_UID, CONFIG_VARIABLE, ROLE_PURGE, TERMINATION_LOG, to_json

_PLACEMENT = ("nodeSelector", "tolerations", "affinity", "priorityClassName", "schedulerName", "runtimeClassName")


def build_purge_pod(app: StreamingApp, platform: Platform) -> dict[str, Any]:
    """Return the pod that deletes the application's prefix in its bucket.

    Of the driver's template it takes what decides where the pod may run. Everything else of the driver and the
    executors is left out, so that an application with a broken template or impossible memory can still be deleted.
    """
    metadata = {
        "name": purge_pod_name(app.metadata.name),
        "namespace": app.metadata.namespace,
        "labels": labels(app.metadata.name, ROLE_PURGE),
        "annotations": {ANNOTATION_APP_UID: app.metadata.uid},
        "ownerReferences": [owner_reference(app)],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": _spec(app, platform)}


def _spec(app: StreamingApp, platform: Platform) -> dict[str, Any]:
    template = app.spec.driver.pod_template.get("spec") or {}
    spec: dict[str, Any] = {
        **{key: template[key] for key in _PLACEMENT if template.get(key) is not None},
        "restartPolicy": "OnFailure",
        "serviceAccountName": service_account(app),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": pod_parts.pod_security(),
        "containers": [_container(app, platform)],
        "volumes": [*pod_parts.scratch_volumes(), *pod_parts.owned_volumes(app)],
    }
    if pod_parts.is_injected(app):
        spec["initContainers"] = pod_parts.runtime_init_containers(app, platform)
    if app.spec.application.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": secret.name} for secret in app.spec.application.image_pull_secrets]
    return spec


def _container(app: StreamingApp, platform: Platform) -> dict[str, Any]:
    bare_spec = msgspec.structs.replace(app.spec, driver=Driver(), executor=Executor(), spark_conf={})
    bare = msgspec.structs.replace(app, spec=bare_spec)
    config = to_json(build_driver_config(bare, app.status.epoch, app.status.lineage, platform))
    user_env = list(app.spec.application.env)
    ours = [
        *pod_parts.owned_env(app, user_env, platform),
        {"name": CONFIG_VARIABLE, "value": pod_parts.literal(config)},
    ]
    return {
        "name": PURGE_CONTAINER,
        "image": app.spec.application.image,
        "imagePullPolicy": app.spec.application.image_pull_policy,
        "command": ["python3", "-m", "tidegate_spark.purge"],
        # Of two variables with one name, the kubelet takes the later.
        "env": [*pod_parts.default_env(), *user_env, *ours],
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": pod_parts.container_security(),
        "terminationMessagePath": TERMINATION_LOG,
        "terminationMessagePolicy": "File",
        "volumeMounts": [*pod_parts.scratch_mounts(), *pod_parts.owned_mounts(app)],
    }
