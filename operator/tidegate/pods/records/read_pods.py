"""Decodes pods into compact records. No I/O.

A pod's JSON is 5 to 10 KB and 25 times that as Python objects; the decoder skips every field that is not named here.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping

import msgspec

from tidegate.api.values.bounded_json import is_fit
from tidegate.pods.records.metadata import labels_of_pod
from tidegate.pods.records.names import (
    DRIVER_CONTAINER,
    EXECUTOR_CONTAINER,
    EXPORT_CONTAINER,
    PURGE_CONTAINER,
    REPARTITION_CONTAINER,
    SNAPSHOT_CONTAINER,
)
from tidegate.pods.records.pod_owner import Belonging, belonging
from tidegate.pods.records.record import FINISHED, Exit, PodRecord, Waiting
from tidegate.pods.records.start_delay import missing_claim
from tidegate.pods.spark.settings import task_slots
from tidegate_spark.contract import protocol
from tidegate_spark.contract.secret_shapes import without_shapes

_MAIN_CONTAINERS = frozenset(
    {DRIVER_CONTAINER, EXECUTOR_CONTAINER, PURGE_CONTAINER, SNAPSHOT_CONTAINER, EXPORT_CONTAINER, REPARTITION_CONTAINER}
)


WATCHED = {protocol.LABEL_MANAGED_BY: protocol.MANAGED_BY}
"""Labels of the pods that are watched."""


class _Terminated(msgspec.Struct):
    exitCode: int = 0  # noqa: N815 - these are the API's names
    reason: str = ""
    message: str = ""
    startedAt: datetime.datetime | None = None  # noqa: N815
    finishedAt: datetime.datetime | None = None  # noqa: N815


class _Running(msgspec.Struct):
    startedAt: datetime.datetime | None = None  # noqa: N815


class _Waiting(msgspec.Struct):
    reason: str = ""
    message: str = ""


class _State(msgspec.Struct):
    waiting: _Waiting | None = None
    running: _Running | None = None
    terminated: _Terminated | None = None


class _ContainerStatus(msgspec.Struct):
    name: str
    image: str = ""
    restartCount: int = 0  # noqa: N815
    state: _State = msgspec.field(default_factory=_State)
    lastState: _State = msgspec.field(default_factory=_State)  # noqa: N815


class _Condition(msgspec.Struct):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    lastTransitionTime: datetime.datetime | None = None  # noqa: N815


class _Executor(msgspec.Struct):
    cores: int = 1


class _Rest(msgspec.Struct):
    secret: str = ""


class Launch(msgspec.Struct):
    """What is read of :class:`tidegate_spark.contract.protocol.DriverConfig`, with its defaults."""

    app: str = ""
    namespace: str = ""
    epoch: int = 0
    executor: _Executor = msgspec.field(default_factory=_Executor)
    injected: bool = True
    agent_secret: str = ""
    spark_conf: dict[str, str] = msgspec.field(default_factory=dict)
    spec_hash: str = ""
    rest: _Rest | None = None
    """Where the rest is of what is too long for a variable."""


_launch = msgspec.json.Decoder(Launch)


class _Owner(msgspec.Struct):
    apiVersion: str = ""  # noqa: N815 - these are the API's names
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class _Metadata(msgspec.Struct):
    name: str
    namespace: str
    uid: str
    resourceVersion: str  # noqa: N815
    creationTimestamp: datetime.datetime | None = None  # noqa: N815
    deletionTimestamp: datetime.datetime | None = None  # noqa: N815
    deletionGracePeriodSeconds: int | None = None  # noqa: N815
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    ownerReferences: list[_Owner] = []  # noqa: N815
    finalizers: list[str] = []


class _Resources(msgspec.Struct):
    limits: dict[str, str | int | float] = {}


class _Variable(msgspec.Struct):
    name: str
    value: str = ""


class _Container(msgspec.Struct):
    name: str
    image: str = ""
    env: list[_Variable] = []
    resources: _Resources = msgspec.field(default_factory=_Resources)


class _Spec(msgspec.Struct):
    nodeName: str = ""  # noqa: N815
    serviceAccountName: str = ""  # noqa: N815
    containers: list[_Container] = []
    initContainers: list[_Container] = []  # noqa: N815
    restartPolicy: str = "Always"  # noqa: N815


class _PodStatus(msgspec.Struct):
    phase: str = "Pending"
    podIP: str = ""  # noqa: N815
    reason: str = ""
    message: str = ""
    conditions: list[_Condition] = []
    containerStatuses: list[_ContainerStatus] = []  # noqa: N815
    initContainerStatuses: list[_ContainerStatus] = []  # noqa: N815


class Pod(msgspec.Struct):
    """The fields of a pod that are read; the JSON decoder's target."""

    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


_pod = msgspec.json.Decoder(Pod)


def read_record(body: msgspec.Raw) -> PodRecord:
    """Return the record of a pod as the API server has it.

    Raises:
        Exception: nothing can be made of it.
    """
    return build_record(_pod.decode(body))


def build_record(pod: Pod) -> PodRecord:
    """Return the record of a pod; of one that is none of ours, its configuration is not read."""
    meta, status, labels = pod.metadata, pod.status, pod.metadata.labels
    whose = belonging(meta.name, meta.ownerReferences, labels.get(protocol.LABEL_APP, ""))
    launch = launch_of(pod) if whose.role == protocol.ROLE_DRIVER else None
    # What nobody can change in a pod that runs comes first: a name, a container's variable.
    epoch = whose.epoch or (launch.epoch if launch else 0) or _number(labels.get(protocol.LABEL_EPOCH, ""))
    main = _main_status(pod)
    conditions = {c.type: c for c in status.conditions}
    scheduled = conditions.get("PodScheduled")
    refused = (scheduled.message or scheduled.reason) if scheduled and scheduled.status == "False" else ""
    no_claim = missing_claim(refused)
    ready = next((c for c in status.conditions if c.type == "Ready" and c.status == "True"), None)
    init_failed = next((c for c in status.initContainerStatuses if _failed_end(c)), None)
    return PodRecord(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resourceVersion,
        app=whose.app,
        role=whose.role,
        epoch=epoch,
        spec_hash=(launch.spec_hash if launch else "") or meta.annotations.get(protocol.ANNOTATION_SPEC_HASH, ""),
        app_uid=whose.app_uid or meta.annotations.get(protocol.ANNOTATION_APP_UID, ""),
        phase=_phase(pod, main),
        created_at=_seconds(meta.creationTimestamp),
        node=pod.spec.nodeName,
        ip=status.podIP,
        ready=ready is not None,
        ready_time=_seconds(ready.lastTransitionTime) if ready else 0.0,
        running=main is not None and main.state.running is not None,
        start_time=_seconds(main.state.running.startedAt) if main and main.state.running else 0.0,
        scheduled_at=_seconds(scheduled.lastTransitionTime) if scheduled and scheduled.status == "True" else 0.0,
        restarts=main.restartCount if main else 0,
        waiting=_first_waiting(pod),
        ended=_last_end(main) if main else None,
        init_ended=_failed_end(init_failed) if init_failed else None,
        init_name=init_failed.name if init_failed else "",
        unschedulable="" if no_claim else refused,
        silent_since=0.0 if refused else _silent_since(pod, scheduled),
        delay=no_claim,
        reason=status.reason,
        message=without_shapes(status.message),
        cpu_limit=_cpu_limit(pod),
        service_account=pod.spec.serviceAccountName,
        executor_slots=task_slots(launch.executor.cores, launch.spark_conf) if launch else 0,
        agent_secret=launch.agent_secret if launch else "",
        signs=launch is not None and launch.injected and bool(launch.agent_secret),
        configuration_secret=launch.rest.secret if launch and launch.rest else "",
        owner_uid=whose.owner_uid,
        labelled=_is_labelled(labels, whose, epoch),
        disruption=_disruption(conditions.get("DisruptionTarget")),
        delete_by=_seconds(meta.deletionTimestamp),
        finalizers=tuple(meta.finalizers) if _is_gone_from_node(pod) else (),
    )


def _is_labelled(labels: Mapping[str, str], whose: Belonging, epoch: int) -> bool:
    # A snapshot's pods are known by their label; without it, they are replaced.
    by_owner = bool(whose.app_uid) or whose.role == protocol.ROLE_EXECUTOR
    given = labels_of_pod(whose.app, whose.role, epoch) if by_owner else WATCHED
    return labels.items() >= given.items()


def _main_status(pod: Pod) -> _ContainerStatus | None:
    # By name: a pod template may bring sidecars, and the kubelet lists states in an order of its own.
    return next((c for c in pod.status.containerStatuses if c.name in _MAIN_CONTAINERS), None)


def _phase(pod: Pod, main: _ContainerStatus | None) -> str:
    """Return the pod's phase as it would be without what a template or a webhook has put beside the main container."""
    ended = main.state.terminated if main is not None else None
    if ended is None or pod.status.phase in FINISHED:
        return pod.status.phase
    # https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#restart-policy
    if ended.exitCode == 0:
        return pod.status.phase if pod.spec.restartPolicy == "Always" else "Succeeded"
    return "Failed" if pod.spec.restartPolicy == "Never" else pod.status.phase


def _is_gone_from_node(pod: Pod) -> bool:
    """Return whether a pod that is deleted has no process left: no sidecar either, whatever its main container did.

    The kubelet confirms it by a deletion without grace, once the pod's own phase says how it ended. The one alone is
    no proof: people, too, delete without grace, and an evicted pod has its phase before its processes end.
    """
    meta = pod.metadata
    confirmed = meta.deletionGracePeriodSeconds == 0 and pod.status.phase in FINISHED
    return meta.deletionTimestamp is not None and (confirmed or not pod.spec.nodeName)


def _cpu_limit(pod: Pod) -> str:
    main = next((c for c in pod.spec.containers if c.name in _MAIN_CONTAINERS), None)
    return str(main.resources.limits.get("cpu", "")) if main is not None else ""


def launch_of(pod: Pod) -> Launch | None:
    """Return what a driver's pod was launched with, None if it does not say, or is no driver's.

    Nobody can change it while the pod is there.
    """
    driver = next((c for c in pod.spec.containers if c.name == DRIVER_CONTAINER), None)
    if driver is None:
        return None
    # Of two variables with one name, the kubelet takes the later.
    config = next((each.value for each in reversed(driver.env) if each.name == protocol.CONFIG_VARIABLE), "")
    try:
        body = config.encode()
        return _launch.decode(body) if body and is_fit(body) else None
    except (msgspec.MsgspecError, UnicodeEncodeError):
        return None  # somebody has changed the pod; it is the runtime that has to make something of it


def _first_waiting(pod: Pod) -> Waiting | None:
    images = {c.name: c.image for c in (*pod.spec.initContainers, *pod.spec.containers)}
    for status in (*pod.status.initContainerStatuses, *pod.status.containerStatuses):
        waiting = status.state.waiting
        if waiting is not None and waiting.reason not in ("PodInitializing", "ContainerCreating", ""):
            return Waiting(
                status.name, images.get(status.name) or status.image, waiting.reason, without_shapes(waiting.message)
            )
    return None


def _silent_since(pod: Pod, scheduled: _Condition | None) -> float:
    statuses = (*pod.status.initContainerStatuses, *pod.status.containerStatuses)
    running = any(status.state.running is not None for status in statuses)
    if running or pod.status.phase in FINISHED or _first_waiting(pod) is not None or _main_ended(pod):
        return 0.0
    ended = (status.state.terminated or status.lastState.terminated for status in statuses)
    placed = scheduled.lastTransitionTime if scheduled is not None else None
    return max(map(_seconds, (pod.metadata.creationTimestamp, placed, *(end.finishedAt for end in ended if end))))


def _main_ended(pod: Pod) -> bool:
    main = _main_status(pod)
    return main is not None and main.state.terminated is not None


def _disruption(condition: _Condition | None) -> str:
    # https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions
    return condition.reason if condition is not None and condition.status == "True" else ""


def _last_end(status: _ContainerStatus) -> Exit | None:
    ended = status.state.terminated or status.lastState.terminated
    return _exit(ended) if ended else None


def _failed_end(status: _ContainerStatus) -> Exit | None:
    if status.state.running is not None:
        return None
    ended = status.state.terminated or status.lastState.terminated
    return _exit(ended) if ended is not None and ended.exitCode != 0 else None


def _exit(ended: _Terminated) -> Exit:
    # What a runtime of an earlier version, or another program, left may have more in it than ours would leave.
    message, started, finished = without_shapes(ended.message), _seconds(ended.startedAt), _seconds(ended.finishedAt)
    return Exit(ended.exitCode, ended.reason, message, finished, started)


def _seconds(time: datetime.datetime | None) -> float:
    return time.timestamp() if time is not None else 0.0


def time_from_seconds(seconds: float) -> datetime.datetime | None:
    """Return a time in whole seconds with its zone, as the API server keeps it; None for 0 and for what is no time.

    An agent is the application's own process: what it reports must not be able to keep the operator from deciding.
    """
    try:
        return datetime.datetime.fromtimestamp(int(seconds), datetime.UTC) if seconds else None
    except (OverflowError, OSError, ValueError):
        return None


def _number(label: str) -> int:
    # A label is 63 characters at most: Python reads so many digits.
    return int(label) if label.isdecimal() else 0
