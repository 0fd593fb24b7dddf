"""The pod that removes the storage of a deleted application. No I/O."""

from __future__ import annotations

from typing import Any

from tidegate.model.streaming_app import StreamingApp
from tidegate.resources import pod_parts
from tidegate.resources.driver_config import build_driver_config, service_account
from tidegate.resources.metadata import labels, owner_reference
from tidegate.resources.names import PURGE_CONTAINER, purge_pod_name
from tidegate.resources.platform import Platform
from tidegate.resources.pod_template import lay_over
from tidegate_spark.protocol import ANNOTATION_APP_UID, CONFIG_VARIABLE, ROLE_PURGE, TERMINATION_LOG, to_json

FIELD = "spec.driver.podTemplate"
_PLACEMENT = ("nodeSelector", "tolerations", "affinity", "priorityClassName", "schedulerName", "securityContext")


def build_purge_pod(app: StreamingApp, platform: Platform) -> dict[str, Any]:
    """Return the pod that deletes the application's prefix in its bucket.

    Of the driver's template it takes labels, annotations and what decides where the pod may run: extra containers and
    volumes of a driver have no business in it.

    Raises:
        SpecError: the driver's template cannot be merged.
    """
    template = app.spec.driver.pod_template
    theirs = {key: value for key, value in (template.get("spec") or {}).items() if key in _PLACEMENT}
    pod = lay_over({"metadata": {}, "spec": {"securityContext": pod_parts.pod_security()}}, {"spec": theirs}, FIELD)
    pod = lay_over(pod, {"metadata": _template_metadata(template)}, FIELD)
    return {"apiVersion": "v1", "kind": "Pod", **lay_over(pod, _owned(app, platform), FIELD)}


def _template_metadata(template: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in (template.get("metadata") or {}).items() if k in ("labels", "annotations")}


def _owned(app: StreamingApp, platform: Platform) -> dict[str, Any]:
    metadata = {
        "name": purge_pod_name(app.metadata.name),
        "namespace": app.metadata.namespace,
        "labels": labels(app.metadata.name, ROLE_PURGE),
        "annotations": {ANNOTATION_APP_UID: app.metadata.uid},
        "ownerReferences": [owner_reference(app)],
    }
    spec: dict[str, Any] = {
        "restartPolicy": "OnFailure",
        "serviceAccountName": service_account(app),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "containers": [_container(app, platform)],
        "volumes": [*pod_parts.scratch_volumes(), *pod_parts.owned_volumes(app)],
    }
    if pod_parts.is_injected(app):
        spec["initContainers"] = pod_parts.runtime_init_containers(app, platform)
    if app.spec.application.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": secret.name} for secret in app.spec.application.image_pull_secrets]
    return {"metadata": metadata, "spec": spec}


def _container(app: StreamingApp, platform: Platform) -> dict[str, Any]:
    user_env = list(app.spec.application.env)
    config = to_json(build_driver_config(app, app.status.epoch, app.status.lineage, platform))
    ours = [*pod_parts.owned_env(app, user_env), {"name": CONFIG_VARIABLE, "value": pod_parts.literal(config)}]
    env = lay_over({"env": [*pod_parts.default_env(), *user_env]}, {"env": ours}, "spec.application")["env"]
    return {
        "name": PURGE_CONTAINER,
        "image": app.spec.application.image,
        "imagePullPolicy": app.spec.application.image_pull_policy,
        "command": ["python3", "-m", "tidegate_spark.purge"],
        "env": env,
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": pod_parts.container_security(),
        "terminationMessagePath": TERMINATION_LOG,
        "terminationMessagePolicy": "File",
        "volumeMounts": [*pod_parts.scratch_mounts(), *pod_parts.owned_mounts(app)],
    }
