"""Builds the rehearsal pod: the driver's pod without its role, labels and ports. No I/O.

So Services, monitors and this operator do not take it for a driver. Spark runs in one process, without executors and
without the API server.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import msgspec

from tidegate.api.spec_hash import spec_hash
from tidegate.api.streaming_app import Driver, RehearsalSpec, StreamingApp, StreamingAppStatus
from tidegate.api.values.quantity import parse_quantity
from tidegate.app.builders.configuration import ConfiguredPod, configuration_of
from tidegate.app.builders.driver import build_driver_pod
from tidegate.pods.builders.cpu_limits import limited_as_driver
from tidegate.pods.builders.driver_config import app_storage, build_driver_config
from tidegate.pods.builders.helper_containers import of_container, raised_resources
from tidegate.pods.records.metadata import labels, owner_reference
from tidegate.pods.records.names import DRIVER_CONTAINER, rehearsal_pod_name
from tidegate.pods.records.platform import Platform
from tidegate.pods.spark.settings import without_secret_files
from tidegate_spark.contract.configuration_protocol import REST_DIRECTORY
from tidegate_spark.contract.protocol import (
    AGENT_TOKEN_FILE,
    ANNOTATION_APP_UID,
    ANNOTATION_SPEC_HASH,
    CONFIG_VARIABLE,
    EXPECTS_NOTHING,
    ROLE_REHEARSAL,
    SPARK_SECRET_FILE,
    RestartSettings,
    StartFrom,
)
from tidegate_spark.contract.rehearsal_protocol import MASTER_VARIABLE, REHEARSAL_MODULE, Rehearsal, rehearsal_place

STOP_SECONDS = 30
"""For its end: no batch of it is needed."""
END_SECONDS = 60
"""What its process gets beyond its own time limit until it is ended from outside."""
_LINEAGE = 1
_FEWEST_TASKS = 2
_HEAP = "spark.driver.memory"
_OF_DRIVERS = ("ports", "startupProbe", "livenessProbe", "readinessProbe")
_OF_DRIVERS_ALONE = [*(file.rpartition("/")[0] for file in (AGENT_TOKEN_FILE, SPARK_SECRET_FILE)), REST_DIRECTORY]
"""Where the driver has its own Secrets."""
_SCRAPED = "prometheus.io/"
"""Annotations that lead to a driver's metrics, of which a rehearsal has none."""


def longest_seconds(rehearse: RehearsalSpec) -> int:
    """Return after how many seconds a rehearsal's pod is ended from outside: to get started, and to run."""
    return 2 * rehearse.timeout_seconds + END_SECONDS


def build_rehearsal(app: StreamingApp, platform: Platform) -> ConfiguredPod:
    """Return the pod that rehearses the version in the spec, on the copy that the upgrade's record names.

    And the Secret of its configuration, if that is too long for it.

    Raises:
        SpecError: no driver pod can be made of the spec either, or its memory does not fit.
        ValueError: there is no copy, or nobody asked for a rehearsal.
    """
    upgrade, rehearse = app.status.upgrade, app.spec.upgrade.rehearsal
    if upgrade is None or upgrade.rollback_snapshot is None or not upgrade.rollback_snapshot.copy or rehearse is None:
        raise ValueError(f"there is nothing to rehearse of {app.metadata.name}")
    small = _with_resources(app, rehearse, platform)
    pod = build_driver_pod(small, app.status.epoch, _LINEAGE, platform)
    name = rehearsal_pod_name(app.metadata.name, upgrade.number)
    config = dataclasses.replace(
        build_driver_config(small, app.status.epoch, _LINEAGE, platform),
        pod_name=name,
        storage=rehearsal_place(app_storage(app), upgrade.rollback_snapshot.copy),
        start_from=StartFrom(app_storage(app), upgrade.rollback_snapshot.copy, upgrade.rollback_snapshot.copy),
        rehearsal=Rehearsal(rehearse.batches, rehearse.timeout_seconds, upgrade.queries),
        # Its own folder is nobody's before it.
        adopt=False,
        expects=EXPECTS_NOTHING,
    )
    config = dataclasses.replace(
        config,
        executor=dataclasses.replace(config.executor, instances=0, template={}),
        spark_conf=without_secret_files(config.spark_conf),
        # A budget of none would give its first failure another name.
        restart=RestartSettings(stall_timeout_seconds=config.restart.stall_timeout_seconds),
    )
    configuration = configuration_of(config)
    spec = _owned(pod["spec"], rehearse, configuration.text)
    configuration.mount(spec)
    manifest = {**pod, "metadata": _metadata(app, name, pod["metadata"], platform), "spec": spec}
    return ConfiguredPod(manifest, configuration.secret(app))


def _with_resources(app: StreamingApp, rehearse: RehearsalSpec, platform: Platform) -> StreamingApp:
    driver: Driver = msgspec.structs.replace(
        app.spec.driver,
        resources=raised_resources(limited_as_driver(app, rehearse.resources), of_container(platform.floors)),
        stop_grace_period_seconds=STOP_SECONDS,
    )
    # A heap that fits into the driver's memory need not fit into this.
    conf = {key: value for key, value in app.spec.spark_conf.items() if key != _HEAP}
    spec = msgspec.structs.replace(app.spec, driver=driver, spark_conf=conf)
    # What the application began with, and what an upgrade pins, is none of its business.
    return msgspec.structs.replace(app, spec=spec, status=StreamingAppStatus(epoch=app.status.epoch))


def _metadata(app: StreamingApp, name: str, drivers: dict[str, Any], platform: Platform) -> dict[str, Any]:
    users = {key: value for key, value in drivers["annotations"].items() if not key.startswith(_SCRAPED)}
    return {
        "name": name,
        "namespace": app.metadata.namespace,
        # Not the template's: by them, Services and budgets of people's own find the driver.
        "labels": {**platform.pod_labels, **labels(app.metadata.name, ROLE_REHEARSAL)},
        "annotations": {**users, ANNOTATION_SPEC_HASH: spec_hash(app), ANNOTATION_APP_UID: app.metadata.uid},
        "ownerReferences": [owner_reference(app)],
    }


def _owned(spec: dict[str, Any], rehearse: RehearsalSpec, text: str) -> dict[str, Any]:
    mine = next(container for container in spec["containers"] if container["name"] == DRIVER_CONTAINER)
    secrets = {mount["name"] for mount in mine["volumeMounts"] if mount["mountPath"] in _OF_DRIVERS_ALONE}
    env = [item for item in mine["env"] if item["name"] not in (CONFIG_VARIABLE, MASTER_VARIABLE)]
    env += [
        {"name": MASTER_VARIABLE, "value": f"local[{_tasks(rehearse)}]"},
        {"name": CONFIG_VARIABLE, "value": text},
    ]
    changed = {
        **{key: value for key, value in mine.items() if key not in _OF_DRIVERS},
        "command": ["python3", "-m", REHEARSAL_MODULE],
        "env": env,
        "volumeMounts": [mount for mount in mine["volumeMounts"] if mount["name"] not in secrets],
    }
    return {
        **spec,
        "restartPolicy": "Never",
        "activeDeadlineSeconds": longest_seconds(rehearse),
        "automountServiceAccountToken": False,
        "containers": [changed if container is mine else container for container in spec["containers"]],
        "volumes": [volume for volume in spec["volumes"] if volume["name"] not in secrets],
    }


def _tasks(rehearse: RehearsalSpec) -> int:
    cpu = parse_quantity("spec.upgrade.rehearsal.resources.requests.cpu", rehearse.resources.cpu)
    return max(_FEWEST_TASKS, math.ceil(cpu))
