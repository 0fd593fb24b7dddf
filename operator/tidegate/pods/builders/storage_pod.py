"""Builds a helper pod that works on an application's storage; purges and snapshots share it. No I/O.

It runs in the operator's image, so that an application whose image is broken or gone can be deleted. From the
application it takes its storage, credentials, ServiceAccount and the variables that reach the storage.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from tidegate.api.control_spec import ChannelSpec, ModelsSpec
from tidegate.api.spec_hash import spec_hash
from tidegate.api.streaming_app import Application, Driver, Executor, Runtime, StreamingApp
from tidegate.api.values.errors import SpecError
from tidegate.pods.builders import pod_parts
from tidegate.pods.builders.driver_config import app_storage, build_driver_config
from tidegate.pods.builders.helper_containers import files_requirements
from tidegate.pods.builders.pod_template import driver_template
from tidegate.pods.records.metadata import labels
from tidegate.pods.records.names import DRIVER_CONTAINER, SHARED_ACCESS_NAME
from tidegate.pods.records.platform import Platform
from tidegate.pods.reserved.accounts import service_account
from tidegate.pods.reserved.exec_limits import is_too_long
from tidegate_spark.contract.protocol import (
    ANNOTATION_APP_UID,
    ANNOTATION_SPEC_HASH,
    CONFIG_VARIABLE,
    TERMINATION_LOG,
    Storage,
    to_json,
)

_PLACEMENT = ("nodeSelector", "tolerations", "affinity", "priorityClassName", "schedulerName", "runtimeClassName")
_REACHES_STORAGE = re.compile(r"AWS_.+|(?i:https?_proxy|no_proxy)|REQUESTS_CA_BUNDLE")
"""Variables that boto3 reads. All others are left out: they are meant for another image, whose PATH or PYTHONHOME would
break this one, and a ConfigMap that one of them names may be gone."""
_FILES = ("configMap", "secret", "projected")
"""Kinds of volumes that hold what such a variable names: a certificate bundle, a profile, a token."""


@dataclass(frozen=True)
class SparkContainer:
    """What a pod gets that works with Spark, all of it in its own container."""

    image: str
    image_pull_policy: str
    resources: Mapping[str, Any]
    deadline_seconds: int


@dataclass(frozen=True)
class Errand:
    """What such a pod is for."""

    pod_name: str
    role: str
    container: str
    module: str
    """Of the runtime; the pod runs it."""
    owner: Mapping[str, Any]
    labels: Mapping[str, str]
    """Beside those of the application."""
    env: Mapping[str, str]
    """Beside the configuration of a launch, as JSON."""
    place: Storage | None = None
    """The storage it works on, if that is not the application's own."""
    spark: SparkContainer | None = None
    """It needs Spark, which the operator's image has not."""
    made_of: str = ""
    """What distinguishes it from a pod that took something else of the application; empty: its whole version does."""
    users_env: tuple[Mapping[str, Any], ...] = ()
    """Variables of the application's beside those that every such pod has."""
    files: tuple[str, ...] = ()
    """Values among which may be files that lead to the storage, beside those of variables."""


def build_storage_pod(app: StreamingApp, errand: Errand, platform: Platform) -> dict[str, Any]:
    """Return the pod that goes on an errand in the application's storage.

    Of the driver's template it takes what decides where the pod may run, and the files that lead to the storage.
    Everything else of the driver and the executors is left out, so that an application with a broken template or
    impossible memory can still be deleted.
    """
    metadata = {
        "name": errand.pod_name,
        "namespace": app.metadata.namespace,
        # Not the templates': by them, Services and budgets of people's own find drivers and executors.
        "labels": {**platform.pod_labels, **labels(app.metadata.name, errand.role), **errand.labels},
        "annotations": {
            **platform.pod_annotations,
            ANNOTATION_APP_UID: app.metadata.uid,
            # By the hash, a pod made before somebody fixed the spec differs from one made after.
            ANNOTATION_SPEC_HASH: errand.made_of or spec_hash(app),
        },
        "ownerReferences": [dict(errand.owner)],
    }
    template = _template_of(app)
    bare, env = _without_what_runs(app, errand), [*_env_for_storage(app), *map(dict, errand.users_env)]
    volumes, mounts = _files_for_storage(template, env, errand.files)
    spec: dict[str, Any] = {
        **{key: template[key] for key in _PLACEMENT if template.get(key) is not None},
        "restartPolicy": "OnFailure",
        "serviceAccountName": service_account(app),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": pod_parts.pod_security(platform),
        "containers": [
            _container(bare, errand, (env, mounts), _image_and_resources(app, errand.spark, platform), platform)
        ],
        "volumes": [*pod_parts.scratch_volumes(app), *volumes, *pod_parts.owned_volumes(bare)],
    }
    if errand.spark is not None:
        spec["activeDeadlineSeconds"] = errand.spark.deadline_seconds
        limit = errand.spark.resources["limits"].get("cpu")
        spec["initContainers"] = pod_parts.runtime_init_containers(bare, platform, limit)
    # As for the init container of drivers: the operator's image may be in the application's registry. A Secret that is
    # not there keeps nothing from being pulled.
    if secrets := pod_parts.pull_secrets(platform, app):
        spec["imagePullSecrets"] = secrets
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _template_of(app: StreamingApp) -> dict[str, Any]:
    """Return what the templates say of the driver's pod; the driver's own alone if the two cannot be merged."""
    try:
        template = driver_template(app)
    except SpecError:  # which keeps drivers from being made, and must not keep an application from being deleted
        template = app.spec.driver.pod_template
    return template.get("spec") or {}


def hash_of_taken(app: StreamingApp, *beside: object) -> str:
    """Return 16 hexadecimal digits over what such a pod takes of the application, and could be wrong in it.

    A limit of processors is no such thing: a pod that the API server took goes on with the one that it has, and what
    was distinguished by it would be replaced, after hours of work, when the operator begins to give limits.

    Args:
        app: the application.
        beside: what else a pod takes, as JSON can hold it.
    """
    template = _template_of(app)
    env, secret = _env_for_storage(app), app.spec.storage.credentials_secret_ref
    taken = (
        dataclasses.astuple(app_storage(app)),
        secret.name if secret is not None else "",
        # Of one that is Tidegate's own, the former name: an operator that names it otherwise replaces no pod at work.
        app.spec.service_account_name or SHARED_ACCESS_NAME,
        {key: template.get(key) for key in _PLACEMENT},
        env,
        _files_for_storage(template, env),
        [pull_secret.name for pull_secret in app.spec.application.image_pull_secrets],
        beside,
    )
    return hashlib.sha256(json.dumps(taken, sort_keys=True).encode()).hexdigest()[:16]


def _without_what_runs(app: StreamingApp, errand: Errand) -> StreamingApp:
    # An image of Spark gets the runtime of this operator, whether or not it brings one.
    runtime = Runtime.IMAGE if errand.spark is None else Runtime.INJECTED
    application = Application(image="", main=app.spec.application.main, runtime=runtime)
    control = msgspec.structs.replace(app.spec.control, models=ModelsSpec(), channel=ChannelSpec())
    spec = msgspec.structs.replace(
        app.spec,
        application=application,
        control=control,
        pod_template={},
        driver=Driver(),
        executor=Executor(),
        spark_conf={},
    )
    return msgspec.structs.replace(app, spec=spec)


def _container(
    bare: StreamingApp,
    errand: Errand,
    users: tuple[list[dict[str, Any]], list[dict[str, Any]]],
    runs: Mapping[str, Any],
    platform: Platform,
) -> dict[str, Any]:
    users_env, users_mounts = users
    config = build_driver_config(bare, bare.status.epoch, bare.status.lineage, platform)
    if errand.place is not None:
        config = dataclasses.replace(config, storage=errand.place)
    in_own_image = {"name": "PYTHONPATH", "value": f"{pod_parts.RUNTIME_IN_OPERATOR_IMAGE}/python"}
    owned_env = [
        *((in_own_image,) if errand.spark is None else ()),
        *pod_parts.owned_env(bare, users_env, platform),
        {"name": CONFIG_VARIABLE, "value": pod_parts.literal(to_json(config))},
        *({"name": name, "value": pod_parts.literal(value)} for name, value in errand.env.items()),
    ]
    return {
        "name": errand.container,
        **runs,
        "command": ["python3", "-m", errand.module],
        # Of two variables with one name, the kubelet takes the later.
        "env": [*pod_parts.default_env(), *users_env, *owned_env],
        "securityContext": pod_parts.container_security(),
        "terminationMessagePath": TERMINATION_LOG,
        "terminationMessagePolicy": "File",
        "volumeMounts": [*pod_parts.scratch_mounts(), *users_mounts, *pod_parts.owned_mounts(bare)],
    }


def _image_and_resources(app: StreamingApp, spark: SparkContainer | None, platform: Platform) -> dict[str, Any]:
    if spark is None:
        return {
            "image": platform.operator_image,
            "imagePullPolicy": platform.operator_image_pull_policy,
            "resources": files_requirements(app, platform.floors),
        }
    return {
        "image": spark.image,
        "imagePullPolicy": spark.image_pull_policy,
        "resources": dict(spark.resources),
    }


def _env_for_storage(app: StreamingApp) -> list[dict[str, Any]]:
    return variables_kept(app.spec.application.env, _if_it_reaches_storage)


def _if_it_reaches_storage(item: Mapping[str, Any]) -> dict[str, Any] | None:
    return dict(item) if _REACHES_STORAGE.fullmatch(str(item.get("name", ""))) else None


def variables_kept(
    env: Sequence[Mapping[str, Any]], kept: Callable[[Mapping[str, Any]], dict[str, Any] | None]
) -> list[dict[str, Any]]:
    """Return what such a pod takes of an application's variables, with the variables that those mention.

    Args:
        env: all of them.
        kept: returns one as it is taken, None if it is not.
    """
    found: list[dict[str, Any]] = []
    mentioned: set[str] = set()
    # Backwards: a variable's value may hold $(NAME) of one before it.
    for item in reversed(env):
        if is_too_long(item):
            continue  # no driver ever ran with it, and no pod would that removes the application
        taken = dict(item) if item.get("name") in mentioned else kept(item)
        if taken is not None:
            found.insert(0, taken)
            mentioned |= variables_in(str(taken.get("value", "")))
    return found


def variables_in(value: str) -> set[str]:
    """Return the names that a variable's value mentions as ``$(NAME)``.

    It is read once from the front: a regular expression looks for the end of each ``$(`` again, and takes seconds for
    some kilobytes of them, in which the operator does nothing else.
    """
    names, at = set[str](), value.find("$(")
    while at >= 0 and (end := value.find(")", at)) >= 0:
        names.add(value[at + 2 : end])
        at = value.find("$(", end)
    return names


def _files_for_storage(
    template: dict[str, Any], env: list[dict[str, Any]], others: tuple[str, ...] = ()
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the volumes and mounts of the driver's template in which a file is that a variable, or another one, names.

    What does not look like volumes and mounts is passed over: a broken template must not be in the way.
    """
    named = [*(str(item.get("value", "")) for item in env), *others]
    drivers = [c for c in _objects(template.get("containers")) if c.get("name") == DRIVER_CONTAINER]
    mounts = [
        mount
        for container in drivers
        for mount in _objects(container.get("volumeMounts"))
        if any(_is_below(value, str(mount.get("mountPath"))) for value in named)
    ]
    wanted = [mount["name"] for mount in mounts if "name" in mount]
    volumes = [v for v in _objects(template.get("volumes")) if v.get("name") in wanted and any(k in v for k in _FILES)]
    kept = [volume["name"] for volume in volumes]
    return [_optional(volume) for volume in volumes], [mount for mount in mounts if mount.get("name") in kept]


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _optional(volume: dict[str, Any]) -> dict[str, Any]:
    # A pod that waits for a ConfigMap that is gone cannot say so.
    kinds = [kind for kind in ("configMap", "secret") if isinstance(volume.get(kind), dict)]
    sources: dict[str, Any] = {kind: {**volume[kind], "optional": True} for kind in kinds}
    return {**volume, **sources}
