"""Spark's configuration for one driver process. Pure.

Order of precedence: what Tidegate owns, then ``spec.sparkConf``, then the script's own, then Tidegate's defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tidegate_spark.contract.owned_settings import remedy_of
from tidegate_spark.contract.protocol import (
    FENCE_FILE,
    LINEAGE_PREFIX,
    PROCESS_VARIABLE,
    SPARK_SECRET_SETTINGS,
    DriverConfig,
    is_reserved_label,
    label_set_by,
)
from tidegate_spark.process.environment import Environment
from tidegate_spark.process.spark import executor_memory, s3a_settings

NOTHING: Mapping[str, str] = MappingProxyType({})
S3A_CLASS = "org.apache.hadoop.fs.s3a.S3AFileSystem"
CHECKPOINT_FILES_CLASS = "dev.tidegate.spark.CheckpointFiles"
"""Ours, in jvm/: raises what goes wrong in writing a checkpoint file, and lets one of two writers win."""
ROCKSDB_CLASS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
HDFS_BACKED_CLASS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
CHECKPOINT_FILES = "spark.sql.streaming.checkpointFileManagerClass"
CHECKPOINT_LOCATION = "spark.sql.streaming.checkpointLocation"
STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
CHECKPOINT_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
DECOMMISSION = "spark.decommission.enabled"
CONTAINER_NAME = "spark.kubernetes.executor.podTemplateContainerName"
PIN = "spark.hadoop.tidegate.checkpoint.pin"
"""Read by jvm/'s class Pin."""
PROCESS = f"spark.executorEnv.{PROCESS_VARIABLE}"
OF_ONE_PROCESS = frozenset({PROCESS})
"""Settings that are another process's no more."""
TEMPLATE_NAME = "executor-template.yaml"
LOOPBACK = "127.0.0.1"

ONLY_WITH = {CHECKPOINT_FORMAT: STATE_STORE, **s3a_settings.ONLY_WITH}
"""Defaults that fit only the default of another setting: with another value of that one, Spark's own default holds."""

LABELS_REMEDY = "choose another name; this label identifies pods"


def remedy_for(key: str) -> str:
    """Return what to do instead of a setting that neither a script nor ``spec.sparkConf`` sets; empty if they may."""
    return remedy_of(key) or (LABELS_REMEDY if is_reserved_label(label_set_by(key)) else "")


def lineage_uri(config: DriverConfig) -> str:
    """Return the directory below which each query of this lineage has its checkpoint."""
    return f"{config.storage.hadoop_uri}/{LINEAGE_PREFIX}/{config.lineage}"


def pin_uri(config: DriverConfig) -> str:
    """Return the object that keeps state of this lineage from being cleaned up while it is there."""
    return f"{lineage_uri(config)}.pin"


def build_spark_conf(
    config: DriverConfig, environment: Environment, process: str, script: Mapping[str, str] = NOTHING
) -> dict[str, str]:
    """Return the whole configuration of the driver's SparkContext.

    Args:
        config: of the driver.
        environment: where it finds things.
        process: names this driver process.
        script: what of the script's own settings is used (:mod:`tidegate_spark.driver.script.script_settings`).
    """
    spec = settings_of_spec(config)
    user = {**script, **spec}
    if not environment.on_kubernetes:
        # Nobody shares a secret with it: Spark makes one up for itself, and refuses to have it from a file.
        user = {key: value for key, value in user.items() if key not in SPARK_SECRET_SETTINGS}
    conf = _session_defaults(config, environment)
    conf |= s3a_settings.defaults(config.storage, bool(config.credentials_secret))
    if environment.on_kubernetes:
        conf |= _executor_defaults(config)
    conf = {key: value for key, value in conf.items() if not _gives_way(key, conf, user)}
    conf |= user
    conf |= s3a_settings.own_path(config.storage, bool(config.credentials_secret), spec, script)
    if environment.on_kubernetes and executor_memory.KEYS & script.keys():
        conf["spark.executor.memoryOverhead"] = f"{executor_memory.overhead_beside(config, script)}m"
    conf |= _owned(config, environment)
    # Executors of two driver processes have the same ids; their logs would overwrite each other.
    conf[PROCESS] = process
    if config.injected:
        conf |= _class_path(conf, environment.jars_directory)
    return conf


def settings_of_spec(config: DriverConfig) -> dict[str, str]:
    """Return those of ``spec.sparkConf`` that are used: an older CRD may have let others pass."""
    return {key: value for key, value in config.spark_conf.items() if key == CONTAINER_NAME or not remedy_for(key)}


def executor_template(config: DriverConfig, pod_uid: str) -> dict[str, Any]:
    """Return the executors' pod template, owned by the driver's pod: they go with it.

    Spark would do so itself if it had the pod's name (``spark.kubernetes.driver.pod.name``), but then it waits a
    second in each start for that pod to be Ready, which it is once its queries run, and writes an exception's trace
    (ExecutorPodsAllocator.start).
    """
    template = dict(config.executor.template)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": config.pod_name, "uid": pod_uid, "controller": True}
    template["metadata"] = {**template.get("metadata", {}), "ownerReferences": [owner]}
    return template


def checkpoint_files(conf: dict[str, str], available: bool) -> dict[str, str]:
    """Return the setting that has our class write checkpoint files; none if it is missing or ``conf`` has its own."""
    return {CHECKPOINT_FILES: CHECKPOINT_FILES_CLASS} if available and CHECKPOINT_FILES not in conf else {}


def fence_settings(config: DriverConfig, etag: str) -> dict[str, str]:
    """Return the settings by which our class looks, before each batch, whether ``fence.json`` still has this ETag."""
    return {
        "spark.hadoop.tidegate.fence.object": f"{config.storage.hadoop_uri}/{FENCE_FILE}",
        "spark.hadoop.tidegate.fence.etag": etag,
    }


def ignored_keys(config: DriverConfig) -> tuple[str, ...]:
    """Return the keys of ``spec.sparkConf`` that have no effect; the operator says what Spark's container is called."""
    return tuple(sorted(key for key in config.spark_conf if key != CONTAINER_NAME and remedy_for(key)))


def format_of_store(store: str, version: str) -> str:
    """Return the version of the checkpoint format that a query with this state store starts with.

    Args:
        store: the class of the state store that the session names.
        version: the session's.
    """
    return "1" if store == HDFS_BACKED_CLASS and version == "2" else version


def _gives_way(key: str, defaults: dict[str, str], user: dict[str, str]) -> bool:
    """Return whether a default goes, because it fits only another one that the user has changed."""
    beside = ONLY_WITH.get(key)
    return beside is not None and user.get(beside, defaults.get(beside)) != defaults.get(beside)


def _session_defaults(config: DriverConfig, environment: Environment) -> dict[str, str]:
    return {
        "spark.app.name": config.app,
        "spark.driver.memory": f"{config.driver_heap_mib}m",
        STATE_STORE: ROCKSDB_CLASS,
        # File names with unique ids keep a late writer of an earlier epoch from overwriting; old lineages keep theirs.
        CHECKPOINT_FORMAT: "2",
        PIN: pin_uri(config),
        "spark.local.dir": f"{environment.work_directory}/spark",
        # What packages are resolved to. The home directory of the image's user cannot be written to.
        "spark.jars.ivy": f"{environment.work_directory}/ivy",
        "spark.ui.showConsoleProgress": "false",
        # Spark ends a driver after max(3, 2 x executors) failed executors, and counts each pod that the API server
        # refuses to create: a full quota would end it in seconds. Executors that never come show as a stall instead.
        "spark.executor.maxNumFailures": str(2**31 - 1),
        # For whoever sets a limit: not counted since the start, or an application that runs for months would be ended
        # by ordinary losses.
        "spark.executor.failuresValidityInterval": "1h",
    }


def _executor_defaults(config: DriverConfig) -> dict[str, str]:
    executor = config.executor
    conf = {
        "spark.kubernetes.container.image.pullPolicy": executor.image_pull_policy,
        "spark.kubernetes.executor.request.cores": executor.cpu_request,
        "spark.kubernetes.executor.deleteOnTermination": "true",
        "spark.executor.memory": f"{executor.heap_mib}m",
        "spark.executor.memoryOverhead": f"{executor.overhead_mib}m",
        # Executors that are too many end their tasks before they go.
        DECOMMISSION: str(not _has_hooks(config)).lower(),
        # Spark then has each pod run a script before it is ended. That of Spark's image holds up whoever deletes a pod,
        # for up to a minute, and other images have none: a step is taken down by us and not through the pod.
        "spark.kubernetes.decommission.script": "true",
    }
    if executor.cpu_limit:
        conf["spark.kubernetes.executor.limit.cores"] = executor.cpu_limit
    return conf


def _has_hooks(config: DriverConfig) -> bool:
    """Return whether the executors' container has hooks of its own, in whose place Spark would put its script."""
    name = config.spark_conf.get(CONTAINER_NAME)
    containers = (config.executor.template.get("spec") or {}).get("containers") or []
    return any("lifecycle" in each for each in containers if name in (None, each.get("name")))


def _owned(config: DriverConfig, environment: Environment) -> dict[str, str]:
    executor = config.executor
    # Spark listens even where it is one process, of which nobody else has to know.
    address = environment.pod_ip if environment.on_kubernetes else LOOPBACK
    conf = {
        "spark.master": environment.master,
        "spark.submit.deployMode": "client",
        "spark.driver.host": address,
        "spark.driver.bindAddress": address,
        SHUFFLE_PARTITIONS: str(config.state_partitions),
        "spark.sql.streaming.minBatchesToRetain": str(config.min_batches_to_retain),
        CHECKPOINT_LOCATION: lineage_uri(config),
        "spark.dynamicAllocation.enabled": "false",
    }
    if not environment.on_kubernetes:
        return conf
    return conf | {
        "spark.kubernetes.namespace": config.namespace,
        "spark.kubernetes.authenticate.driver.serviceAccountName": executor.service_account,
        "spark.kubernetes.authenticate.executor.serviceAccountName": executor.service_account,
        "spark.kubernetes.container.image": executor.image,
        "spark.kubernetes.executor.container.image": executor.image,
        "spark.kubernetes.executor.podNamePrefix": executor.pod_name_prefix,
        "spark.kubernetes.executor.podTemplateFile": f"{environment.work_directory}/{TEMPLATE_NAME}",
        "spark.executor.instances": str(executor.instances),
        "spark.executor.cores": str(executor.cores),
    }


def _class_path(conf: dict[str, str], directory: str) -> dict[str, str]:
    keys = ("spark.driver.extraClassPath", "spark.executor.extraClassPath")
    return {key: ":".join(part for part in (f"{directory}/*", conf.get(key, "")) if part) for key in keys}
