"""The pod that removes the storage of a deleted application. No I/O.

It runs in Tidegate's own image, not in the application's: an application whose image is broken, gone or private must
still be deletable. Of the application it has what reaches the storage: place, credentials, ServiceAccount (a cloud
identity may be bound to it), and those of its environment variables that say how to reach it.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from tidegate.decide.spec_hash import spec_hash
from tidegate.model.streaming_app import Application, Driver, Executor, Runtime, StreamingApp
from tidegate.resources import pod_parts
from tidegate.resources.driver_config import build_driver_config, service_account
from tidegate.resources.metadata import labels, owner_reference
from tidegate.resources.names import PURGE_CONTAINER, purge_pod_name
from tidegate.resources.platform import Platform
from tidegate_spark.protocol import (
    ANNOTATION_APP_UID,
    ANNOTATION_SPEC_HASH,
    CONFIG_VARIABLE,
    ROLE_PURGE,
    TERMINATION_LOG,
    to_json,
)

_PLACEMENT = ("nodeSelector", "tolerations", "affinity", "priorityClassName", "schedulerName", "runtimeClassName")
_REACHES_STORAGE = re.compile(r"AWS_.+|(?i:https?_proxy|no_proxy)|REQUESTS_CA_BUNDLE")
"""Variables that boto3 reads. All others are left out: they are meant for another image, whose PATH or PYTHONHOME would
break this one, and a ConfigMap that one of them names may be gone."""


def build_purge_pod(app: StreamingApp, platform: Platform) -> dict[str, Any]:
    """Return the pod that deletes the application's prefix in its bucket.

    Of the driver's template it takes what decides where the pod may run. Everything else of the driver and the
    executors is left out, so that an application with a broken template or impossible memory can still be deleted.
    """
    metadata = {
        "name": purge_pod_name(app.metadata.name),
        "namespace": app.metadata.namespace,
        "labels": labels(app.metadata.name, ROLE_PURGE),
        # The hash tells a pod that was made before somebody mended the spec from one made after.
        "annotations": {ANNOTATION_APP_UID: app.metadata.uid, ANNOTATION_SPEC_HASH: spec_hash(app)},
        "ownerReferences": [owner_reference(app)],
    }
    template = app.spec.driver.pod_template.get("spec") or {}
    bare = _without_what_runs(app)
    spec: dict[str, Any] = {
        **{key: template[key] for key in _PLACEMENT if template.get(key) is not None},
        "restartPolicy": "OnFailure",
        "serviceAccountName": service_account(app),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": pod_parts.pod_security(),
        "containers": [_container(bare, _env_for_storage(app), platform)],
        "volumes": [*pod_parts.scratch_volumes(), *pod_parts.owned_volumes(bare)],
    }
    # As for the init container of drivers: Tidegate's image may be in the application's registry. A Secret that is not
    # there keeps nothing from being pulled.
    if app.spec.application.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": secret.name} for secret in app.spec.application.image_pull_secrets]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _without_what_runs(app: StreamingApp) -> StreamingApp:
    application = Application(image="", main=app.spec.application.main, runtime=Runtime.IMAGE)
    spec = msgspec.structs.replace(
        app.spec, application=application, driver=Driver(), executor=Executor(), spark_conf={}
    )
    return msgspec.structs.replace(app, spec=spec)


def _container(bare: StreamingApp, users_env: list[dict[str, Any]], platform: Platform) -> dict[str, Any]:
    config = to_json(build_driver_config(bare, bare.status.epoch, bare.status.lineage, platform))
    owned_env = [
        {"name": "PYTHONPATH", "value": f"{pod_parts.RUNTIME_IN_OPERATOR_IMAGE}/python"},
        *pod_parts.owned_env(bare, []),
        {"name": CONFIG_VARIABLE, "value": pod_parts.literal(config)},
    ]
    return {
        "name": PURGE_CONTAINER,
        "image": platform.operator_image,
        "imagePullPolicy": platform.operator_image_pull_policy,
        "command": ["python3", "-m", "tidegate_spark.purge"],
        # Of two variables with one name, the kubelet takes the later.
        "env": [*pod_parts.default_env(), *users_env, *owned_env],
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": pod_parts.container_security(),
        "terminationMessagePath": TERMINATION_LOG,
        "terminationMessagePolicy": "File",
        "volumeMounts": [*pod_parts.scratch_mounts(), *pod_parts.owned_mounts(bare)],
    }


def _env_for_storage(app: StreamingApp) -> list[dict[str, Any]]:
    kept: list[dict[str, Any]] = []
    mentioned: set[str] = set()
    # Backwards: a variable's value may hold $(NAME) of one before it.
    for item in reversed(app.spec.application.env):
        name = str(item.get("name", ""))
        if _REACHES_STORAGE.fullmatch(name) or name in mentioned:
            kept.insert(0, item)
            mentioned.update(re.findall(r"\$\(([^)]+)\)", str(item.get("value", ""))))
    return kept
