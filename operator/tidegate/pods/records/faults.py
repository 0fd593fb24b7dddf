"""Names what keeps a pod from its work, and what to do. No I/O.

Reasons come from the pod's state and events, the termination message and the agent's report, never from the text of an
error.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from dataclasses import dataclass

from tidegate.pods.records import fault_messages
from tidegate.pods.records.names import EXPORT_CONTAINER, PURGE_CONTAINER, RUNTIME_CONTAINER, SNAPSHOT_CONTAINER
from tidegate.pods.records.record import Exit, PodRecord, Waiting
from tidegate.pods.records.start_delay import Obstacle, StartDelay
from tidegate_spark.contract import protocol
from tidegate_spark.contract.protocol import (
    EXIT_DEPENDENCY,
    EXIT_OK,
    EXIT_STOPPED,
    ROLE_DRIVER,
    ROLE_EXECUTOR,
    ROLE_EXPORT,
    ROLE_PURGE,
    ROLE_REHEARSAL,
    ROLE_REPARTITION,
    ROLE_SNAPSHOT,
    Termination,
)
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.registry import is_of_version, outlasts_rollback

IMAGE_REASONS = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})
_REFUSED_REASONS = frozenset(
    {"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError", "PreCreateHookError"}
)
_NOT_STARTED = frozenset({"StartError", "ContainerCannotRun"})
"""Reasons of an end before the process began, of which only the container runtime can say why: containerd's and
Docker's."""
_MAY_START = frozenset(
    {Reason.UNSCHEDULABLE, Reason.IMAGE_PULLING, Reason.POD_NOT_STARTING, Reason.CONFIGURATION_CHANGED}
)
KILLED_BY_MEMORY, EVICTED = "OOMKilled", "Evicted"
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


@dataclass(frozen=True, slots=True)
class Problem:
    """A named fault; the message says what it is and what to do."""

    reason: Reason
    message: str
    of_former_version: str = ""
    """The message where another version takes the place of the one with the fault, if it is another: without what
    follows by itself as long as that one is in force."""


def read_termination(ended: Exit | None) -> Termination | None:
    """Return the runtime's termination message, or None if the process left none (killed, or not our runtime)."""
    return _parse(ended.message) if ended is not None and is_json(ended.message) else None


def last_report(pod: PodRecord | None) -> Termination | None:
    """Return the termination message of a pod whose main process does not run; None also if there is none, or no pod.

    Of a process that the kubelet started again the last message is not its own.
    """
    return read_termination(pod.ended) if pod is not None and not pod.running else None


def has_completed(pod: PodRecord | None) -> bool:
    """Return whether a pod's main process has ended because its work is done."""
    reported = last_report(pod)
    return reported is not None and reported.reason is Reason.COMPLETED


def blames_version(pod: PodRecord) -> bool:
    """Return whether the last end of the pod's main process speaks against the version that ran in it.

    False for one that has not ended, was asked to, has done its work, or was ended by its surroundings.
    """
    ended = pod.ended
    if ended is None or (ended.exit_code == 0 and read_termination(ended) is None):
        return False
    reason = end_problem(pod).reason
    if reason is Reason.UNKNOWN:  # a newer runtime's reason: its exit code gives the kind of end
        return ended.exit_code not in (EXIT_DEPENDENCY, EXIT_STOPPED)
    return is_of_version(reason)


def ended_for_all_versions(pod: PodRecord) -> bool:
    """Return whether the last end of the pod's main process is one that the previous version comes to as well."""
    termination = read_termination(pod.ended)
    return termination is not None and outlasts_rollback(termination.reason)


def has_unknown_termination(ended: Exit | None) -> bool:
    """Return whether the process left a termination message of a form that is not known: its runtime is newer."""
    return ended is not None and is_json(ended.message) and _parse(ended.message) is None


def is_json(termination: str) -> bool:
    """Return whether a termination message is a runtime's report, of whatever form, and not somebody's words."""
    return termination.startswith("{")


@functools.lru_cache(256)
def _parse(termination: str) -> Termination | None:
    # Several rules read the same one with each look at a driver that ended.
    try:
        read = protocol.from_report(Termination, termination)
    except ValueError:
        return None
    # A program that is not the runtime can leave no reason at all: no condition takes that.
    return read if read.reason else dataclasses.replace(read, reason=Reason.UNKNOWN)


def lost_from_sight(ended: Exit | None) -> bool:
    """Return whether the process went with its node: nobody saw its end, and it is not the application's failure."""
    return ended is not None and ended.reason in _OUT_OF_SIGHT and read_termination(ended) is None


def end_problem(pod: PodRecord) -> Problem:
    """Return why the pod's main process ended other than by finishing its work."""
    ended = pod.ended
    if ended is None and not pod.reason and pod.init_ended is not None:
        return _init_problem(pod, pod.init_ended)  # the main process never began
    termination = read_termination(ended)
    if termination is not None and termination.reason is Reason.STOPPED and pod.reason:
        ended = termination = None  # it stopped as asked; the kubelet has the cause
    if termination is not None:
        said = fault_messages.reported(termination.exception, termination.message)
        if termination.reason is Reason.UNKNOWN and ended is not None:
            said = fault_messages.foreign_reason(_reason_word(ended.message), said)
        return _with_remedy(termination.reason, said, pod)
    if ended is not None and ended.reason in _NOT_STARTED and ended.message:
        return Problem(Reason.CONTAINER_REFUSED, fault_messages.process_not_started(pod.name, ended.message))
    if pod.role == ROLE_PURGE:
        return _purge_problem(pod, ended)
    return _silent_end_problem(pod, ended)


def _reason_word(termination: str) -> str:
    word = json.loads(termination).get("reason")
    return word if isinstance(word, str) else ""


def why_still_there(pod: PodRecord) -> str:
    """Return as text why a deleted pod is still there: its node, or only the object's finalizers."""
    if pod.finalizers:
        return fault_messages.held_by_finalizers(pod.name, pod.namespace, pod.finalizers)
    if not pod.node:
        return fault_messages.not_gone(pod.name, pod.namespace)
    return fault_messages.not_confirmed(pod.node, pod.name)


def is_over_limit(pod: PodRecord) -> bool:
    """Return whether the kubelet ended a pod because it wrote more to its local disk than a limit of its own allows.

    Where it is the node that is short of disk or memory, the kubelet adds the condition.
    """
    return pod.reason == EVICTED and not pod.disruption


def _silent_end_problem(pod: PodRecord, ended: Exit | None) -> Problem:
    if is_over_limit(pod):
        resources = _RESOURCES.get(pod.role, "driver")
        text = fault_messages.over_limit(pod.name, pod.message, resources)
        return Problem(Reason.EPHEMERAL_STORAGE_EXCEEDED, text)
    if pod.reason and (ended is None or ended.reason != KILLED_BY_MEMORY):
        return Problem(Reason.DRIVER_LOST, fault_messages.pod_ended(pod.name, pod.reason, pod.message))
    if lost_from_sight(ended):
        return Problem(Reason.DRIVER_LOST, fault_messages.lost_with_node(pod.name))
    reason, code = (ended.reason, ended.exit_code) if ended else ("", None)
    return silent_end(pod.name, pod.namespace, reason, code)


def silent_end(pod: str, namespace: str, reason: str, exit_code: int | None) -> Problem:
    """Return why a process ended that left no termination message; ``reason`` is the kubelet's."""
    if reason == KILLED_BY_MEMORY:
        return Problem(Reason.OUT_OF_MEMORY, fault_messages.out_of_memory(pod))
    if exit_code == SIGKILL:
        return Problem(Reason.DRIVER_CRASHED, fault_messages.killed(pod))
    return Problem(Reason.DRIVER_CRASHED, fault_messages.no_termination_message(pod, namespace, exit_code))


def reported_problem(fault: protocol.Fault, pod: PodRecord) -> Problem:
    """Return the fault that a process in a pod reports."""
    return _with_remedy(fault.reason, fault.message, pod)


def helper_problem(pod: PodRecord) -> Problem | None:
    """Return what keeps a helper pod from its work, at its start or by how it ended last; None if nothing is known to.

    One that was asked to stop goes on where it was, in its next process or in the next pod.
    """
    problem = start_problem(pod)
    if problem is None and has_failed(pod):
        problem = end_problem(pod)
    return problem


def has_failed(pod: PodRecord) -> bool:
    """Return whether the last process of a helper pod failed, and the kubelet is to start it again."""
    return pod.ended is not None and pod.ended.exit_code not in (EXIT_OK, EXIT_STOPPED) and not pod.ready


def start_problem(pod: PodRecord) -> Problem | None:
    """Return what keeps the pod from starting, or None if nothing that is known does."""
    if pod.waiting is not None and pod.waiting.reason in IMAGE_REASONS:
        return _image_problem(pod, pod.waiting)
    if pod.init_ended is not None:
        return _init_problem(pod, pod.init_ended)
    if pod.waiting is not None and pod.waiting.reason in _REFUSED_REASONS:
        message = fault_messages.container_refused(pod.name, pod.waiting.container, pod.waiting.message)
        return Problem(Reason.CONTAINER_REFUSED, message)
    if pod.unschedulable:
        resources = "" if pod.role in (ROLE_PURGE, ROLE_SNAPSHOT) else _RESOURCES.get(pod.role, "driver")
        return Problem(Reason.UNSCHEDULABLE, fault_messages.unschedulable(pod.name, pod.unschedulable, resources))
    return _delay_problem(pod, pod.delay) if pod.delay is not None else None


def is_named(problem: Problem | None) -> bool:
    """Return whether something is known to be wrong with a pod, or around it, which a longer wait does not change.

    A pod that no node accepts, or of which nobody knows anything, may still start: nothing is taken back for it.
    """
    return problem is not None and problem.reason not in _MAY_START


def lacks_configuration(pod: PodRecord) -> bool:
    """Return whether a driver does not start for want of the Secret of its configuration, which Tidegate makes."""
    secret, delay = pod.configuration_secret, pod.delay
    return bool(secret) and delay is not None and delay.obstacle is Obstacle.REFERENCE and secret in delay.name


def _delay_problem(pod: PodRecord, delay: StartDelay) -> Problem:
    if lacks_configuration(pod):
        message = fault_messages.configuration_missing(pod.configuration_secret, pod.name)
        return Problem(Reason.CONFIGURATION_CHANGED, message)
    if delay.obstacle is Obstacle.REFERENCE:
        return Problem(Reason.REFERENCE_MISSING, fault_messages.reference_missing(pod.name, delay.name, delay.text))
    if delay.obstacle is Obstacle.VOLUME:
        return Problem(Reason.VOLUME_NOT_MOUNTED, fault_messages.volume_not_mounted(pod.name, delay.text))
    if delay.obstacle is Obstacle.SANDBOX:
        return Problem(Reason.SANDBOX_FAILED, fault_messages.sandbox_failed(pod.name, pod.node, delay.text))
    if delay.obstacle is Obstacle.PULLING:
        return Problem(Reason.IMAGE_PULLING, fault_messages.image_pulling(pod.name, pod.node, delay.text))
    if delay.obstacle is Obstacle.UNREAD:
        message = fault_messages.start_unread(pod.name, pod.namespace, delay.text)
    else:
        message = fault_messages.start_unexplained(pod.name, pod.namespace, pod.node, delay.text)
    return Problem(Reason.POD_NOT_STARTING, message)


def init_problem(pod: PodRecord) -> Problem | None:
    """Return the failed init container for which the main process of a pod never began, None if there is none."""
    return _init_problem(pod, pod.init_ended) if pod.init_ended is not None else None


def _init_problem(pod: PodRecord, ended: Exit) -> Problem:
    if ended.reason == KILLED_BY_MEMORY or ended.exit_code == SIGKILL:
        remedy = _more_memory_for_init(pod)
        sure = ended.reason == KILLED_BY_MEMORY
        return Problem(Reason.INIT_FAILED, fault_messages.init_killed(pod.name, pod.init_name, remedy, sure=sure))
    message = fault_messages.init_failed(pod.name, pod.namespace, pod.init_name, ended.exit_code)
    return Problem(Reason.INIT_FAILED, message)


def _more_memory_for_init(pod: PodRecord) -> str:
    if pod.init_name != RUNTIME_CONTAINER:
        group = "executor" if pod.role == ROLE_EXECUTOR else "driver"
        return fault_messages.memory_in_template(group)
    if pod.role in (ROLE_DRIVER, ROLE_EXECUTOR):
        return fault_messages.HELPER_MEMORY_BY_RESTART
    # Of the two, another attempt has another pod.
    once = pod.role in (ROLE_REHEARSAL, ROLE_REPARTITION)
    return fault_messages.HELPER_MEMORY if once else fault_messages.helper_memory(pod.name, pod.namespace)


def _purge_problem(pod: PodRecord, ended: Exit | None) -> Problem:
    # Every start goes on with what is still there.
    out_of_memory = ended is not None and ended.reason == KILLED_BY_MEMORY
    code = ended.exit_code if ended else None
    message = fault_messages.purge_failed(pod.name, pod.namespace, code, out_of_memory=out_of_memory)
    return Problem(Reason.PURGE_FAILED, message)


def _image_problem(pod: PodRecord, waiting: Waiting) -> Problem:
    if waiting.container in (PURGE_CONTAINER, SNAPSHOT_CONTAINER, RUNTIME_CONTAINER):
        message_of = fault_messages.image_of_tidegate_not_pulled
    elif waiting.container == EXPORT_CONTAINER:
        message_of = fault_messages.image_of_export_not_pulled
    else:
        message_of = fault_messages.image_not_pulled
    message = message_of(pod.name, pod.namespace, waiting.image, waiting.container)
    return Problem(Reason.IMAGE_PULL_FAILED, message)


def _with_remedy(given: Reason, text: str, pod: PodRecord) -> Problem:
    reason = given or Reason.UNKNOWN
    names = {"POD": pod.name, "NAMESPACE": pod.namespace, "APP": pod.app}
    former = fault_messages.with_remedy(reason, text, names, in_force=False)
    return Problem(reason, fault_messages.with_remedy(reason, text, names), former)
