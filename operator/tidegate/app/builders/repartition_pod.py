"""Builds the pod that repartitions state, with the image and the settings that wrote it. No I/O.

The kubelet does not restart it: each attempt has a pod and a lineage of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tidegate.api.spec_hash import with_version
from tidegate.api.streaming_app import RepartitionStatus, StreamingApp, StreamingAppSpec
from tidegate.api.values.errors import SpecError
from tidegate.api.values.quantity import parse_quantity
from tidegate.pods import messages
from tidegate.pods.builders import pod_parts
from tidegate.pods.builders.cpu_limits import limited_as_driver
from tidegate.pods.builders.helper_containers import of_pod, raised_resources
from tidegate.pods.builders.storage_pod import Errand, SparkContainer, build_storage_pod, variables_kept
from tidegate.pods.records.metadata import owner_reference
from tidegate.pods.records.names import REPARTITION_CONTAINER, repartition_pod_name
from tidegate.pods.records.platform import Platform
from tidegate.pods.spark import java_options
from tidegate.pods.spark.memory import split_memory
from tidegate_spark.contract.protocol import LABEL_EPOCH, POD_UID_VARIABLE, ROLE_REPARTITION, to_order
from tidegate_spark.contract.rehearsal_protocol import MASTER_VARIABLE
from tidegate_spark.contract.repartition_protocol import REPARTITION_MODULE, REPARTITION_VARIABLE, Repartition

_SETTINGS = ("spark.sql.streaming.stateStore.", "spark.io.compression.", "spark.hadoop.")
"""How Spark settings begin without which state may not be read, or the storage not be reached."""


def build_repartition_pod(app: StreamingApp, platform: Platform) -> dict[str, Any]:
    """Return the pod of the attempt that the upgrade's record names.

    Raises:
        SpecError: no pod can be made of the spec.
        ValueError: no attempt is recorded.
    """
    upgrade = app.status.upgrade
    known = upgrade.repartition if upgrade is not None else None
    if upgrade is None or known is None or not known.epoch:
        raise ValueError(f"no repartition of {app.metadata.name} has begun")
    return build_attempt(app, known, upgrade.to_spec_hash, platform)


def build_attempt(app: StreamingApp, known: RepartitionStatus, made_of: str, platform: Platform) -> dict[str, Any]:
    """Return the pod of an attempt, which need not be recorded: the API server may only be to look at it.

    Args:
        app: the application, with the version that the attempt is for.
        known: the attempt, with its epoch.
        made_of: hash of that version.
        platform: what the operator runs with.

    Raises:
        SpecError: no pod can be made of the spec.
    """
    wanted = app.spec.state.repartition
    resources = raised_resources(limited_as_driver(app, wanted.resources), of_pod(platform.floors))
    requirements = pod_parts.resource_requirements("state.repartition", resources)
    writer = _writer_of(app)
    image, conf = writer.application.image, writer.spark_conf
    java_env = variables_kept(writer.application.env, java_options.variable_reaching_storage)
    spark = SparkContainer(image, app.spec.application.image_pull_policy, requirements, wanted.timeout_seconds)
    order = _order(app, known, image, conf)
    errand = Errand(
        pod_name=repartition_pod_name(app.metadata.name, known.epoch),
        role=ROLE_REPARTITION,
        container=REPARTITION_CONTAINER,
        module=REPARTITION_MODULE,
        owner=owner_reference(app),
        labels={LABEL_EPOCH: str(known.epoch)},
        env={REPARTITION_VARIABLE: to_order(order), MASTER_VARIABLE: f"local[{order.cores}]"},
        spark=spark,
        made_of=made_of,
        users_env=tuple(java_env),
        files=(*_settings_of(conf).values(), *java_options.files_named(conf, java_env)),
    )
    pod = build_storage_pod(app, errand, platform)
    (container,) = pod["spec"]["containers"]
    uid = {"name": POD_UID_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}
    changed = {**container, "env": [*container["env"], uid]}
    return {**pod, "spec": {**pod["spec"], "restartPolicy": "Never", "containers": [changed]}}


def _order(app: StreamingApp, known: RepartitionStatus, image: str, conf: Mapping[str, str]) -> Repartition:
    resources = app.spec.state.repartition.resources
    try:
        heap = split_memory("driver", resources.memory, {}).heap_mib
    except SpecError as error:
        raise SpecError("spec.state.repartition.resources.requests.memory", error.remedy) from error
    return Repartition(
        partitions=known.partitions,
        pin=known.snapshot_id,
        of_lineage=app.status.lineage,
        lineage=known.lineage,
        image=image,
        cores=max(1, math.ceil(parse_quantity("spec.state.repartition.resources.requests.cpu", resources.cpu))),
        heap_mib=heap,
        spark_conf={**_settings_of(conf), **java_options.reaching_storage(conf)},
    )


def _settings_of(conf: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in sorted(conf.items()) if key.startswith(_SETTINGS)}


def _writer_of(app: StreamingApp) -> StreamingAppSpec:
    """Return the version that wrote the state: the stable one, since no other ran after it.

    Not the new version's. The old one's Spark is known before anything is stopped, from its copy of the state; it reads
    what it wrote; and what its settings name is in its image.
    """
    stable = app.status.last_stable
    if stable is None:
        return app.spec
    try:
        return with_version(app.spec, stable.spec)
    except ValueError as error:
        # By a newer operator, or by somebody's hand. To guess would have another Spark write the state.
        raise SpecError("status.lastStable.spec", messages.unreadable_by_operator(error)) from error
