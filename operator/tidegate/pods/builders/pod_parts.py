"""Parts that drivers, executors and purge pods share: hardening, runtime, credentials. No I/O."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from tidegate.api.streaming_app import Resources, Runtime, StreamingApp
from tidegate.api.values.quantity import parse_quantity
from tidegate.pods.builders.helper_containers import runtime_requirements
from tidegate.pods.builders.pod_template import COMMON_FIELD, lay_over
from tidegate.pods.records.names import RUNTIME_CONTAINER
from tidegate.pods.records.platform import Platform
from tidegate.pods.reserved.exec_limits import refuse_long_environment, refuse_long_variables
from tidegate.pods.reserved.reserved_env import refuse_reserved
from tidegate.pods.reserved.reserved_labels import refuse_in_template
from tidegate_spark.contract.protocol import (
    ACCESS_KEY,
    CREDENTIALS_DIRECTORY,
    LOG_FORMAT_JSON,
    LOG_FORMAT_VARIABLE,
    RUNTIME_DIRECTORY,
    SECRET_KEY,
    SECRET_VARIABLES,
    SESSION_TOKEN,
    WORK_DIRECTORY,
)

RUNTIME_IN_OPERATOR_IMAGE = "/opt/tidegate-runtime"
_RUNTIME_SIZE = "1Gi"
"""Several times what the runtime and its jars take."""
_RUNTIME_VOLUME, _CREDENTIALS_VOLUME = "tidegate-runtime", "tidegate-storage-credentials"


def pod_security(platform: Platform) -> dict[str, Any]:
    """Return a pod's security context, as the installation has it."""
    return copy.deepcopy(dict(platform.pod_security))


def default_pod(platform: Platform, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a pod has that its template may change: as the installation has it, and defaults of its spec."""
    secrets = pull_secrets(platform)
    return {
        "metadata": {"labels": dict(platform.pod_labels), "annotations": dict(platform.pod_annotations)},
        "spec": {
            **spec,
            "securityContext": pod_security(platform),
            **({"imagePullSecrets": secrets} if secrets else {}),
        },
    }


def pull_secrets(platform: Platform, app: StreamingApp | None = None) -> list[dict[str, str]]:
    """Return who may pull a pod's images: the installation's Secrets, then those of an application, each once."""
    own = () if app is None else (secret.name for secret in app.spec.application.image_pull_secrets)
    return [{"name": name} for name in dict.fromkeys((*platform.image_pull_secrets, *own))]


def container_security() -> dict[str, Any]:
    """Return a container's security context for the restricted standard, with a root file system nobody can write."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def scratch_volumes(app: StreamingApp) -> list[dict[str, Any]]:
    """Return the writable volumes; a template may replace them by name, for instance to put them on a disk.

    The kubelet evicts a pod that writes more: without a limit, it evicts others when the node's disk is full. What is
    no quantity is the API server's to refuse, not ours: a pod that removes an application must not fail over it.
    """
    scratch = app.spec.scratch
    limits = {"tmp": scratch.tmp.size_limit, "work": scratch.work.size_limit}
    return [{"name": name, "emptyDir": {"sizeLimit": str(limit)}} for name, limit in limits.items()]


def scratch_mounts() -> list[dict[str, Any]]:
    """Return where the writable volumes appear."""
    return [{"name": "tmp", "mountPath": "/tmp"}, {"name": "work", "mountPath": WORK_DIRECTORY}]  # noqa: S108 - a mount


def resource_requirements(role: str, resources: Resources) -> dict[str, Any]:
    """Return requests and limits: memory is both, so that a pod is never killed for memory it was promised.

    Raises:
        SpecError: a value is no quantity.
    """
    whole = resources.complete
    for kind, named in (("requests", whole.requests), ("limits", whole.limits)):
        for name, value in named.items():
            parse_quantity(f"spec.{role}.resources.{kind}.{name}", value)
    return {
        "requests": {name: str(value) for name, value in whole.requests.items()},
        "limits": {name: str(value) for name, value in whole.limits.items()},
    }


def is_injected(app: StreamingApp) -> bool:
    """Return whether an init container brings the runtime into the pods."""
    return app.spec.application.runtime is Runtime.INJECTED


def runtime_init_containers(app: StreamingApp, platform: Platform, cpu_limit: str | int | None) -> list[dict[str, Any]]:
    """Return the init container that copies the runtime in; none for images that bring it.

    Args:
        app: the application.
        platform: what the installation decides.
        cpu_limit: that of the container that comes after it, None if it has none.

    Raises:
        SpecError: that is no quantity.
    """
    if not is_injected(app):
        return []
    return [
        {
            "name": RUNTIME_CONTAINER,
            "image": platform.operator_image,
            "imagePullPolicy": platform.operator_image_pull_policy,
            "command": ["cp", "-r", f"{RUNTIME_IN_OPERATOR_IMAGE}/.", f"{RUNTIME_DIRECTORY}/"],
            "securityContext": container_security(),
            "resources": runtime_requirements(app, platform.floors, cpu_limit),
            "volumeMounts": [{"name": _RUNTIME_VOLUME, "mountPath": RUNTIME_DIRECTORY}],
        }
    ]


def owned_volumes(app: StreamingApp) -> list[dict[str, Any]]:
    """Return the volumes of the runtime and of the storage credentials.

    The credentials are optional: a pod that waited for a missing Secret could not say what it is waiting for.
    """
    volumes: list[dict[str, Any]] = []
    if is_injected(app):
        volumes.append({"name": _RUNTIME_VOLUME, "emptyDir": {"sizeLimit": _RUNTIME_SIZE}})
    if app.spec.storage.credentials_secret_ref is not None:
        secret = {"secretName": app.spec.storage.credentials_secret_ref.name, "optional": True, "defaultMode": 0o440}
        volumes.append({"name": _CREDENTIALS_VOLUME, "secret": secret})
    return volumes


def owned_mounts(app: StreamingApp) -> list[dict[str, Any]]:
    """Return where :func:`owned_volumes` appear in Tidegate's container."""
    mounts: list[dict[str, Any]] = []
    if is_injected(app):
        mounts.append({"name": _RUNTIME_VOLUME, "mountPath": RUNTIME_DIRECTORY, "readOnly": True})
    if app.spec.storage.credentials_secret_ref is not None:
        mounts.append({"name": _CREDENTIALS_VOLUME, "mountPath": CREDENTIALS_DIRECTORY, "readOnly": True})
    return mounts


def mount_optional_secret(spec: dict[str, Any], secret: str, volume: str, directory: str) -> None:
    """Give a pod's first container a Secret at a directory, if there is one by then; changes ``spec``."""
    source = {"secretName": secret, "optional": True, "defaultMode": 0o440}
    spec["volumes"].append({"name": volume, "secret": source})
    mount = {"name": volume, "mountPath": directory, "readOnly": True}
    spec["containers"][0]["volumeMounts"].append(mount)


def default_env() -> list[dict[str, Any]]:
    """Return variables that the user may set otherwise: a home that can be written, logs that are not held back."""
    return [{"name": "HOME", "value": WORK_DIRECTORY}, {"name": "PYTHONUNBUFFERED", "value": "1"}]


def owned_env(app: StreamingApp, user_env: list[dict[str, Any]], platform: Platform) -> list[dict[str, Any]]:
    """Return the variables of the runtime and of the storage credentials.

    Args:
        app: the application.
        user_env: what the user set; a PYTHONPATH of theirs is kept behind the runtime's, and what comes from Secrets is
            named.
        platform: what the installation decides.
    """
    env: list[dict[str, Any]] = []
    if is_injected(app):
        theirs = [str(item["value"]) for item in user_env if item.get("name") == "PYTHONPATH" and item.get("value")]
        env.append({"name": "PYTHONPATH", "value": ":".join([f"{RUNTIME_DIRECTORY}/python", *theirs[-1:]])})
    if app.spec.storage.credentials_secret_ref is not None:
        secret = app.spec.storage.credentials_secret_ref.name
        env += [
            {"name": key, "valueFrom": {"secretKeyRef": {"name": secret, "key": key, "optional": True}}}
            for key in (ACCESS_KEY, SECRET_KEY, SESSION_TOKEN)
        ]
    names = sorted(item["name"] for item in user_env if "secretKeyRef" in (item.get("valueFrom") or {}))
    if names:
        # So that their values are left out of what the runtime prints and reports.
        env.append({"name": SECRET_VARIABLES, "value": ",".join(names)})
    if platform.runtime_log_format == LOG_FORMAT_JSON:
        env.append({"name": LOG_FORMAT_VARIABLE, "value": LOG_FORMAT_JSON})
    return env


def build_users_pod(
    app: StreamingApp, container: str, defaults: Mapping[str, Any], template: Mapping[str, Any], field: str
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a pod as far as it is the user's: the defaults, over them the templates, over these the application's env.

    The application's template is below the one of the kind of pod.

    Args:
        app: the application.
        container: the name of Tidegate's container in the pod.
        defaults: of the pod, as :func:`default_pod` returns them; beside them, it has those of its container.
        template: the user's pod template for this kind of pod.
        field: path of that template in the spec, for errors.

    Returns:
        The pod, and the variables of its container, which are the user's and the defaults.

    Raises:
        SpecError: the template cannot be merged, or a variable, label or annotation is reserved.
        TooLongError: Linux would start no process with the variables.
    """
    refuse_in_template(app.spec.pod_template, COMMON_FIELD)
    refuse_in_template(template, field)
    default = {
        "name": container,
        "env": default_env(),
        "securityContext": container_security(),
        "volumeMounts": scratch_mounts(),
    }
    pod_spec = {**defaults["spec"], "containers": [default], "volumes": scratch_volumes(app)}
    env = {"spec": {"containers": [{"name": container, "env": list(app.spec.application.env)}]}}
    common = lay_over({**defaults, "spec": pod_spec}, app.spec.pod_template, COMMON_FIELD)
    templates = lay_over(common, template, field)
    pod = lay_over(templates, env, field, owned=True)
    refuse_reserved(_env_of(templates, container), app, f"{field}.spec.containers[{container}].env")
    refuse_reserved(app.spec.application.env, app, "spec.application.env")
    whole = _env_of(pod, container)
    refuse_long_variables(_env_of(templates, container), f"{field}.spec.containers[{container}].env")
    refuse_long_variables(app.spec.application.env, "spec.application.env")
    # Of both, in their order: a value may name a variable of the other.
    refuse_long_variables(whole, "spec.application.env")
    refuse_long_environment(whole, "spec.application.env")
    return pod, whole


def _env_of(pod: Mapping[str, Any], container: str) -> list[dict[str, Any]]:
    # A template may have taken the containers, or the spec as a whole, away.
    containers = (pod.get("spec") or {}).get("containers") or ()
    return next((c.get("env", []) for c in containers if c["name"] == container), [])


def literal(json_text: str) -> str:
    """Return JSON in a spelling that the kubelet passes on unchanged: it would expand ``$(NAME)`` in a variable."""
    return json_text.replace("$", "\\u0024")
