"""Names what keeps a pod from doing its work, and says what to do. No I/O.

Reasons come from the pod's state, from the runtime's termination message and from the agent's report: never from the
text of an error.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from tidegate.observe.pods import Exit, PodRecord, Waiting
from tidegate.resources.names import EXPORT_CONTAINER, PURGE_CONTAINER, RUNTIME_CONTAINER, SNAPSHOT_CONTAINER
from tidegate_spark import protocol
from tidegate_spark.protocol import (
    ACCESS_KEY,
    ROLE_EXECUTOR,
    ROLE_EXPORT,
    ROLE_PURGE,
    ROLE_REHEARSAL,
    ROLE_REPARTITION,
    ROLE_SNAPSHOT,
    SECRET_KEY,
    Termination,
)
from tidegate_spark.reasons import Reason

IMAGE_REASONS = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})
_REFUSED_REASONS = frozenset(
    {"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError", "PreCreateHookError"}
)
KILLED_BY_MEMORY = "OOMKilled"
_RESOURCES = {
    ROLE_EXECUTOR: "executor",
    ROLE_EXPORT: "export",
    ROLE_REHEARSAL: "upgrade.rehearsal",
    ROLE_REPARTITION: "state.repartition",
}
"""Role -> group of the spec that says what its pods ask for."""
_OUT_OF_SIGHT = frozenset({"Unknown", "ContainerStatusUnknown"})
"""Reasons of an end that nobody saw: containerd's and the kubelet's, after the node itself was gone for a while."""
SIGKILL = 137
"""128 + 9: the exit code of a process that SIGKILL ended."""

_BY_ITSELF = "it is tried again by itself."
_AGAIN = "a new driver looks again by itself, after at most five minutes."
_NAMED_SECRET = "the Secret that spec.storage.credentialsSecretRef names"  # noqa: S105 - words about a Secret
_CREDENTIALS_NEED = "read, write, list and delete below spec.storage.uri"
REMEDIES: dict[Reason, str] = {
    Reason.APPLICATION_FAILED: (
        "Mend the application; it is started again with growing pauses, and at once when its spec changes."
    ),
    Reason.MAIN_NOT_FOUND: "Check spec.application.main against what the image holds.",
    Reason.QUERY_REFUSED: "Mend the application's queries and its image.",
    Reason.DRIVER_CRASHED: "See its logs; it is started again with growing pauses.",
    Reason.STALLED: "See its logs, and raise spec.restart.stallTimeoutSeconds if single tasks last that long.",
    Reason.BUCKET_NOT_FOUND: (
        f"Create the bucket, or the application anew with another spec.storage.uri; {_BY_ITSELF}"
    ),
    Reason.CREDENTIALS_MISSING: (
        f"Create {_NAMED_SECRET}, with the keys {ACCESS_KEY} and {SECRET_KEY}, or name none and give the pod's "
        f"ServiceAccount an identity of the cloud provider; {_BY_ITSELF}"
    ),
    Reason.CREDENTIALS_REJECTED: (
        f"Correct {_NAMED_SECRET} or, without one, the pod's own identity, or grant {_CREDENTIALS_NEED}; {_BY_ITSELF}"
    ),
    Reason.STORAGE_UNAVAILABLE: (
        f"Check spec.storage.endpoint and spec.storage.region, the network and the store; {_BY_ITSELF}"
    ),
    Reason.STORAGE_UNSUITABLE: f"Use an object store that honours conditional writes; {_AGAIN}",
    Reason.STORAGE_OWNED: (
        "Create the application anew with another spec.storage.uri, or remove what the other application left there, "
        f"or only app.json if its state is meant to be gone on from; {_AGAIN}"
    ),
    Reason.PROTOCOL_MISMATCH: (
        "Upgrade what is too old: the operator, or with spec.application.runtime Image the image."
    ),
    Reason.NEWER_FORMAT: (
        "Use an image with a newer runtime, or upgrade Tidegate, which brings its own into the pods unless "
        f"spec.application.runtime is Image; {_AGAIN}"
    ),
    Reason.CONNECTOR_MISSING: "Use an image that holds the connector's jars.",
    Reason.SNAPSHOT_UNUSABLE: (
        "Mend what is named and delete the driver's pod, which has it tried again, or create the application anew from "
        "another snapshot. It does not start without the snapshot."
    ),
    Reason.STATE_MISSING: (
        "Bring back what was removed below spec.storage.uri and change spec.restartNonce, or give the state up with "
        "spec.upgrade.mode Stateless."
    ),
    Reason.BROKER_UNAVAILABLE: f"Check the broker's address, topics and credentials, and the network; {_BY_ITSELF}",
}
"""The only place that says what to do about a reason; the runtime's messages say what is wrong."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A named fault; the message says what it is and what to do."""

    reason: Reason
    message: str


def read_termination(ended: Exit | None) -> Termination | None:
    """Return the runtime's termination message, or None if the process left none (killed, or not our runtime)."""
    return _read_words(ended.message) if ended is not None and ended.message.startswith("{") else None


@functools.lru_cache(256)
def _read_words(message: str) -> Termination | None:
    # Several rules read the same words with each look at a driver that ended.
    try:
        return protocol.from_json(Termination, message)
    except ValueError:
        return None


def lost_from_sight(ended: Exit | None) -> bool:
    """Return whether the process went with its node: nobody saw its end, and it is not the application's failure."""
    return ended is not None and ended.reason in _OUT_OF_SIGHT and read_termination(ended) is None


def name_end(pod: PodRecord) -> Problem:
    """Return why the pod's main process ended other than by finishing its work."""
    ended = pod.ended
    if ended is None and not pod.reason and pod.init_ended is not None:
        return _init_problem(pod, pod.init_ended)  # the main process never began
    told = read_termination(ended)
    if told is not None:
        what = f"{told.exception}: {told.message}" if told.exception else told.message
        return _with_remedy(told.reason, what)
    if pod.role == ROLE_PURGE:
        return _name_end_of_purge(pod, ended)
    return _name_silent_end(pod, ended)


def _name_silent_end(pod: PodRecord, ended: Exit | None) -> Problem:
    if ended is not None and ended.reason == KILLED_BY_MEMORY:
        return Problem(
            Reason.OUT_OF_MEMORY,
            f"Pod {pod.name} needed more than its memory and was killed. Raise spec.driver.resources.requests.memory.",
        )
    if pod.reason:
        return Problem(Reason.DRIVER_LOST, f"Pod {pod.name} was ended: {pod.reason}. {pod.message}".strip())
    if lost_from_sight(ended):
        message = f"The node of pod {pod.name} lost sight of its process, as when the node itself is started again."
        return Problem(Reason.DRIVER_LOST, message)
    if ended is not None and ended.exit_code == SIGKILL:
        return Problem(
            Reason.DRIVER_CRASHED,
            f"The process in pod {pod.name} was killed by SIGKILL; often for want of memory, then raise "
            "spec.driver.resources.requests.memory.",
        )
    code = f"exit code {ended.exit_code}" if ended else "no exit code"
    return Problem(Reason.DRIVER_CRASHED, f"The process in pod {pod.name} ended without a word ({code}). See its logs.")


def name_reported(fault: protocol.Fault) -> Problem:
    """Return the fault an agent reports."""
    return _with_remedy(fault.reason, fault.message)


def name_start_problem(pod: PodRecord) -> Problem | None:
    """Return what keeps the pod from starting, or None if nothing that is known does."""
    if pod.waiting is not None and pod.waiting.reason in IMAGE_REASONS:
        return _image_problem(pod, pod.waiting)
    if pod.init_ended is not None:
        return _init_problem(pod, pod.init_ended)
    if pod.waiting is not None and pod.waiting.reason in _REFUSED_REASONS:
        return Problem(
            Reason.CONTAINER_REFUSED,
            f"Container {pod.waiting.container} of pod {pod.name} can not be started: {pod.waiting.message}",
        )
    if pod.unschedulable:
        if pod.role in (ROLE_PURGE, ROLE_SNAPSHOT):
            # What it asks for is fixed and small; where it may run is the driver's.
            remedy = "Free resources, add nodes, or correct where it may run in spec.driver.podTemplate."
        else:
            remedy = (
                f"Free resources, add nodes, or ask for less in spec.{_RESOURCES.get(pod.role, 'driver')}.resources."
            )
        return Problem(Reason.UNSCHEDULABLE, f"No node takes pod {pod.name}: {pod.unschedulable} {remedy}")
    return None


def _init_problem(pod: PodRecord, ended: Exit) -> Problem:
    return Problem(
        Reason.INIT_FAILED,
        f"Init container {pod.init_name} of pod {pod.name} failed (exit code {ended.exit_code}). "
        f"See its logs: kubectl logs {pod.name} -c {pod.init_name}",
    )


def _name_end_of_purge(pod: PodRecord, ended: Exit | None) -> Problem:
    code = f"exit code {ended.exit_code}" if ended else "no exit code"
    how = "needed more than its memory" if ended and ended.reason == KILLED_BY_MEMORY else f"left no word ({code})"
    # Its memory is fixed, and every start goes on with what is still there.
    return Problem(
        Reason.PURGE_FAILED,
        f"The process in pod {pod.name} {how}. It is started again and goes on where it was; if that recurs, see its "
        f"logs: kubectl logs {pod.name} --previous.",
    )


def _image_problem(pod: PodRecord, waiting: Waiting) -> Problem:
    # The kubelet's message alternates between two texts with each attempt; ours stays, and so does the status.
    if waiting.container in (PURGE_CONTAINER, SNAPSHOT_CONTAINER, RUNTIME_CONTAINER):
        remedy = "It is Tidegate's own: check its name in the values of Tidegate's chart, and"
    elif waiting.container == EXPORT_CONTAINER:
        remedy = "Check spec.export.image and, of the application,"
    else:
        remedy = "Check the image's name and"
    return Problem(
        Reason.IMAGE_PULL_FAILED,
        f"Image {waiting.image} of container {waiting.container} can not be pulled. {remedy} "
        f"spec.application.imagePullSecrets; the registry's answer: kubectl describe pod {pod.name} -n {pod.namespace}",
    )


def _with_remedy(reason: Reason, message: str) -> Problem:
    remedy = REMEDIES.get(reason, "")
    text = message.strip() or reason
    ending = "" if text.endswith((".", "!", "?")) else "."
    return Problem(reason, f"{text}{ending} {remedy}".strip())
