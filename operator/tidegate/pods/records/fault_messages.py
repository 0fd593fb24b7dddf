"""Messages about faults of pods. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.registry import entry_of


def with_remedy(
    reason: Reason, text: str, names: Mapping[str, str] = MappingProxyType({}), *, in_force: bool = True
) -> str:
    """Return what a process reported with what the registry says to do, and what follows by itself.

    Args:
        reason: the one that it gave.
        text: what it reported.
        names: of what runs it (POD, NAMESPACE, APP), for the registry's commands; they keep words that have none.
        in_force: whether what reported it is to go on; else the registry's words about that are left out.
    """
    entry = entry_of(reason)
    said = " ".join(part for part in (entry.remedy, entry.after if in_force else "") if part)
    said = _COMMAND.sub(lambda found: _WORD.sub(lambda word: names.get(word[0], word[0]), found[0]), said)
    return f"{sentence(text.strip() or reason)} {said}".strip()


_MOST_FINALIZERS = 5
_LONGEST_WORD = 64
_COMMAND = re.compile(r'"kubectl [^"]+"')
"""A command in the registry, whose words in capitals stand for the reader's."""
_WORD = re.compile(r"\b(?:POD|NAMESPACE|APP)\b")


def logs(pod: str, namespace: str, options: str = "") -> str:
    """Return the command that shows a pod's log, as it is to be copied."""
    return f'"kubectl logs {pod} -n {namespace}{options}"'


def describe(pod: str, namespace: str) -> str:
    """Return the command that shows a pod with its events."""
    return f'"kubectl describe pod {pod} -n {namespace}"'


OLDER_RUNTIME = (
    "If its runtime is older than the operator, change spec.restartNonce of the application or, if "
    "spec.application.runtime is Image, use an image with a newer runtime."
)
"""What to do about an agent that refuses an order."""


def sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def reported(exception: str, text: str) -> str:
    return f"{exception}: {text}".strip() if exception else text.strip()


def foreign_reason(word: str, text: str) -> str:
    """Return what a runtime reported for a reason that only it knows."""
    return f"The runtime reports {_one_word(word)}, a reason that this operator does not know: {text}"


def _one_word(text: str) -> str:
    # It stands in a pod's termination message, where anybody's program may have written it.
    return re.sub(r"[^A-Za-z0-9]", "", text)[:_LONGEST_WORD] or "a word"


# --- how a process ended ---


def out_of_memory(pod: str) -> str:
    return f"Pod {pod} needed more than its memory and was killed. Raise spec.driver.resources.requests.memory."


def pod_ended(pod: str, why: str, detail: str) -> str:
    return f"Pod {pod} was ended: {why}. {detail}".strip()


_DISRUPTIONS = {
    "PreemptionByScheduler": "was preempted by a pod of a higher priority",
    "DeletionByTaintManager": "was deleted because its node was tainted",
    "EvictionByEvictionAPI": "was evicted, as when a node is drained",
    "DeletionByPodGC": "was removed because its node is gone",
}


def disruption(word: str) -> str:
    """Return what the cluster did to a pod, by the word of its condition DisruptionTarget; a pod's name goes before."""
    return _DISRUPTIONS.get(word, f"was ended from outside ({word})")


def over_limit(pod: str, detail: str, resources: str) -> str:
    """Return the text; ``resources`` is the group of the spec that has the limit."""
    fields = (
        f"spec.{resources}.resources.limits.ephemeral-storage, or the sizeLimit of the volume (spec.scratch, unless it "
        "is in a pod template)"
    )
    return f"Pod {pod} was evicted: {sentence(detail or 'its local disk use exceeds a limit')} Raise {fields}."


def lost_with_node(pod: str) -> str:
    return f"The node of pod {pod} lost its process, as it does when the node itself restarts."


def killed(pod: str) -> str:
    return (
        f"The process in pod {pod} was killed by SIGKILL. The usual cause is a lack of memory: raise "
        "spec.driver.resources.requests.memory."
    )


def no_termination_message(pod: str, namespace: str, exit_code: int | None) -> str:
    return (
        f"The process in pod {pod} ended without a termination message ({_code(exit_code)}). See its log: "
        f"{logs(pod, namespace, ' --previous')}."
    )


def init_failed(pod: str, namespace: str, container: str, exit_code: int) -> str:
    # Without --previous: while it waits for its next start, that is the log of the failed one; once it runs again, too
    # little is known to name one.
    return (
        f"Init container {container} of pod {pod} failed (exit code {exit_code}). See its log: "
        f"{logs(pod, namespace, f' -c {container}')}."
    )


def init_killed(pod: str, container: str, remedy: str, *, sure: bool) -> str:
    """Return the text; ``remedy`` gives it more memory. The log of a process that was killed says nothing of that."""
    why = "needed more than its memory and was killed." if sure else _KILLED
    return f"Init container {container} of pod {pod} {why} {remedy}"


_KILLED = "was killed by SIGKILL, usually for a lack of memory."
HELPER_MEMORY = "Raise spec.helpers.resources.limits.memory."
HELPER_MEMORY_BY_RESTART = "Raise spec.helpers.resources.limits.memory, and change spec.restartNonce: new pods get it."


def helper_memory(pod: str, namespace: str) -> str:
    return (
        "Raise spec.helpers.resources.limits.memory of the application, and delete the pod: "
        f'"kubectl delete pod {pod} -n {namespace}". The next one gets it.'
    )


def memory_in_template(group: str) -> str:
    """Return the text; ``group`` of the spec has a template of its own."""
    return f"Raise its resources.limits.memory in spec.{group}.podTemplate or spec.podTemplate."


def purge_failed(pod: str, namespace: str, exit_code: int | None, *, out_of_memory: bool) -> str:
    if out_of_memory:
        return helper_out_of_memory(pod, namespace)
    return (
        f"The process in pod {pod} ended without a termination message ({_code(exit_code)}). It restarts and "
        f"continues; if that recurs, see its log: {logs(pod, namespace, ' --previous')}."
    )


def helper_out_of_memory(pod: str, namespace: str) -> str:
    """Return the text about a pod that Tidegate adds; the log of a process that was killed for its memory has none."""
    return (
        f"The process in pod {pod} needed more than its memory and was killed. It restarts and continues; if that "
        "recurs, raise spec.helpers.resources.limits.memory of the application, and delete the pod: "
        f'"kubectl delete pod {pod} -n {namespace}". The next one gets it.'
    )


def helper_out_of_memory_without_app(pod: str, namespace: str) -> str:
    """Return the text about such a pod where no application says what it gets."""
    return (
        f"The process in pod {pod} needed more than its memory and was killed. It restarts and continues; if that "
        f"recurs, have a LimitRange of namespace {namespace} demand more memory (min.memory), and delete the pod: "
        f'"kubectl delete pod {pod} -n {namespace}". The next one gets it.'
    )


def _code(exit_code: int | None) -> str:
    return "no exit code" if exit_code is None else f"exit code {exit_code}"


def not_confirmed(node: str, pod: str) -> str:
    return (
        f"Node {node} does not confirm the end of pod {pod}. {out_of_service(node)} Never delete the pod with --force."
    )


def held_by_finalizers(pod: str, namespace: str, finalizers: Sequence[str]) -> str:
    """Return the text about a pod that runs nothing any more; its node, which is well, is not to be touched."""
    named = ", ".join(finalizers[:_MOST_FINALIZERS]) + (", …" if len(finalizers) > _MOST_FINALIZERS else "")
    return (
        f"Pod {pod} has ended and is deleted, but its metadata.finalizers keep it: {named}. See why the program that "
        f"owns them does not remove them; if there is no such program any more, remove them yourself: "
        f'"kubectl edit pod {pod} -n {namespace}".'
    )


def not_gone(pod: str, namespace: str) -> str:
    return f"Pod {pod}, which never had a node, was deleted and is still there. See {describe(pod, namespace)}."


def out_of_service(node: str) -> str:
    """Return what to do about a node whose pods are to be given up; it is for a machine that is off, and only then."""
    return (
        f'If the machine of the node is off, run "kubectl taint nodes {node} '
        'node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", which removes all its pods, and before the machine '
        f'starts again "kubectl taint nodes {node} node.kubernetes.io/out-of-service-", which removes the taint.'
    )


# --- what keeps a pod from starting ---


def container_refused(pod: str, container: str, detail: str) -> str:
    return f"Container {container} of pod {pod} cannot be started: {sentence(detail)} Correct what this names."


def process_not_started(pod: str, detail: str) -> str:
    return f"The process of pod {pod} cannot be started: {sentence(detail)} Correct what this names."


def configuration_missing(secret: str, pod: str) -> str:
    return (
        f"Secret {secret} with the configuration of pod {pod} does not exist. Tidegate creates it again, or a new pod."
    )


def reference_missing(pod: str, missing: str, detail: str) -> str:
    return (
        f"{missing} does not exist, and pod {pod} refers to it: {sentence(detail)} Create it, or correct the reference "
        "in the spec."
    )


def volume_not_mounted(pod: str, detail: str) -> str:
    return f"A volume of pod {pod} cannot be mounted: {sentence(detail)} Correct what this names."


def sandbox_failed(pod: str, node: str, detail: str) -> str:
    return (
        f"Node {node} cannot prepare pod {pod}: {sentence(detail)} Check the network and the container runtime of the "
        "node, or spec.podTemplate.spec.runtimeClassName."
    )


def image_pulling(pod: str, node: str, detail: str) -> str:
    return f"Node {node} still pulls an image of pod {pod}: {sentence(detail)} Nothing has to be done while it does."


def start_unread(pod: str, namespace: str, why: str) -> str:
    return (
        f"No container of pod {pod} has started, and the operator cannot read the pod's events ({why}). See them: "
        f"{describe(pod, namespace)}."
    )


def start_unexplained(pod: str, namespace: str, node: str, warning: str) -> str:
    where = f"Node {node} has not started pod {pod}" if node else f"No scheduler has chosen a node for pod {pod}"
    said = f" The last warning: {sentence(warning)}" if warning else " Its events name no cause."
    check = "the node and its kubelet" if node else "schedulerName in the pod templates"
    return f"{where} yet.{said} Check {check}: {describe(pod, namespace)}."


def unschedulable(pod: str, detail: str, resources: str) -> str:
    """Return the text; ``resources`` is the group of the spec that says what the pod requests, empty if it is fixed."""
    ways = ["add nodes", "free resources"]
    if resources:
        ways.append(f"lower spec.{resources}.resources.requests")
    if resources in _OWN_TEMPLATES:
        ways.append(f"{_PLACEMENT} spec.podTemplate and spec.{resources}.podTemplate")
    elif not resources:
        # What a pod of fixed size requests is small; where it may run is said for the driver.
        ways.append(f"{_PLACEMENT} spec.podTemplate and spec.driver.podTemplate")
    return f"No node accepts pod {pod}: {detail} To correct that, {', '.join(ways[:-1])}, or {ways[-1]}."


_OWN_TEMPLATES = frozenset({"driver", "executor"})
"""Of the others the driver's template decides, and its edit restarts the application."""
_PLACEMENT = "correct nodeSelector, affinity and tolerations in"


def image_of_tidegate_not_pulled(pod: str, namespace: str, image: str, container: str) -> str:
    check = "It is Tidegate's own: correct its name in the values of Tidegate's chart, or"
    return _image_not_pulled(pod, namespace, image, container, check)


def image_of_export_not_pulled(pod: str, namespace: str, image: str, container: str) -> str:
    return _image_not_pulled(pod, namespace, image, container, "Correct spec.export.image or, of the application,")


def image_not_pulled(pod: str, namespace: str, image: str, container: str) -> str:
    return _image_not_pulled(pod, namespace, image, container, "Correct spec.application.image or")


def _image_not_pulled(pod: str, namespace: str, image: str, container: str, check: str) -> str:
    # The kubelet's message alternates between two texts with each attempt; ours stays, and so does the status.
    return (
        f"Image {image} of container {container} cannot be pulled. {check} spec.application.imagePullSecrets; the "
        f'answer of the registry: "kubectl describe pod {pod} -n {namespace}".'
    )
