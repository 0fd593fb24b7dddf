"""Texts about what keeps a pod from doing its work: facts in, text out; no code reads them. No I/O."""

from __future__ import annotations

from tidegate_spark.reasons import Reason
from tidegate_spark.reasons.registry import entry_of


def with_remedy(reason: Reason, text: str) -> str:
    """Return what a process reported with what the registry says to do, and what follows by itself."""
    entry = entry_of(reason)
    return " ".join(part for part in (sentence(text.strip() or reason), entry.remedy, entry.after) if part)


def sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def reported(exception: str, text: str) -> str:
    return f"{exception}: {text}".strip() if exception else text.strip()


# --- how a process ended ---


def out_of_memory(pod: str) -> str:
    return f"Pod {pod} needed more than its memory and was killed. Raise spec.driver.resources.requests.memory."


def pod_ended(pod: str, why: str, detail: str) -> str:
    return f"Pod {pod} was ended: {why}. {detail}".strip()


def lost_with_node(pod: str) -> str:
    return f"The node of pod {pod} lost its process, as it does when the node itself restarts."


def killed(pod: str) -> str:
    return (
        f"The process in pod {pod} was killed by SIGKILL. The usual cause is a lack of memory: raise "
        "spec.driver.resources.requests.memory."
    )


def no_termination_message(pod: str, exit_code: int | None) -> str:
    return f"The process in pod {pod} ended without a termination message ({_code(exit_code)}). See its log."


def init_failed(pod: str, container: str, exit_code: int) -> str:
    return (
        f"Init container {container} of pod {pod} failed (exit code {exit_code}). See its log: kubectl logs {pod} "
        f"-c {container}"
    )


def purge_failed(pod: str, exit_code: int | None, *, out_of_memory: bool) -> str:
    how = (
        "needed more than its memory" if out_of_memory else f"ended without a termination message ({_code(exit_code)})"
    )
    return (
        f"The process in pod {pod} {how}. It restarts and continues; if that recurs, see its log: kubectl logs {pod} "
        "--previous."
    )


def _code(exit_code: int | None) -> str:
    return "no exit code" if exit_code is None else f"exit code {exit_code}"


def not_confirmed(node: str, pod: str) -> str:
    return (
        f"Node {node} does not confirm the end of pod {pod}. If the node is switched off for good, taint it "
        "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute."
    )


# --- what keeps a pod from starting ---


def container_refused(pod: str, container: str, detail: str) -> str:
    return f"Container {container} of pod {pod} cannot be started: {detail}"


def unschedulable(pod: str, detail: str, resources: str) -> str:
    """Return the text; ``resources`` is the group of the spec that says what the pod requests, empty if it is fixed."""
    # What a pod of fixed size requests is small; where it may run is said for the driver.
    less = f"request less in spec.{resources}.resources" if resources else "correct the node in spec.driver.podTemplate"
    return f"No node accepts pod {pod}: {detail} Free resources, add nodes, or {less}."


def image_of_tidegate_not_pulled(pod: str, namespace: str, image: str, container: str) -> str:
    check = "It is Tidegate's own: check its name in the values of Tidegate's chart, and"
    return _image_not_pulled(pod, namespace, image, container, check)


def image_of_export_not_pulled(pod: str, namespace: str, image: str, container: str) -> str:
    return _image_not_pulled(pod, namespace, image, container, "Check spec.export.image and, of the application,")


def image_not_pulled(pod: str, namespace: str, image: str, container: str) -> str:
    return _image_not_pulled(pod, namespace, image, container, "Check the name of the image and")


def _image_not_pulled(pod: str, namespace: str, image: str, container: str, check: str) -> str:
    # The kubelet's message alternates between two texts with each attempt; ours stays, and so does the status.
    return (
        f"Image {image} of container {container} cannot be pulled. {check} spec.application.imagePullSecrets; the "
        f"answer of the registry: kubectl describe pod {pod} -n {namespace}"
    )
