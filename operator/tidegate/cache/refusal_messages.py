"""Messages: what the API server, or somebody else's object, prevents. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidegate.engine.write_messages import refused
from tidegate.kube.failures import Failure, Forbidden
from tidegate.pods.admission.limit_range_refusal import refusal_of_helper
from tidegate.pods.records.floors import Floors

CONFIGURATION = "the Secret of the configuration"
DRIVERS_ACCESS, LAUNCH_SECRETS = "the access of the driver", "the Secrets of the launch"


def pod_refused(pod: Mapping[str, Any], answer: Failure, floors: Floors) -> str:
    """Return the text about a pod; of one that a LimitRange refused, with the containers and the fields that help."""
    what = f"pod {pod['metadata']['name']}"
    if not isinstance(answer, Forbidden) or not answer.limit_range:
        return refused(what, answer.message)
    return refused(what, *refusal_of_helper(answer.message, pod, floors.unread))


def namespace_terminating(namespace: str) -> str:
    return f"Namespace {namespace} is being deleted and accepts no more pods."


def storage_taken(rival: str) -> str:
    return f"application {rival} has just taken the storage"


def access_name_taken(kind: str, name: str) -> str:
    return (
        f"{kind} {name} exists and is not Tidegate's. Whoever uses it moves to another name and deletes it; or set "
        "spec.serviceAccountName of the application to a ServiceAccount of your own."
    )


def pod_name_taken(pod: str) -> str:
    return (
        f"Pod {pod} exists and does not belong to this application. Delete it, or the object that creates it (its "
        "metadata.ownerReferences)."
    )


def driver_disowned(pod: str) -> str:
    return f"Pod {pod} runs this application's program without belonging to it: somebody removed its owner. Delete it."


def pod_name_taken_for_snapshot(pod: str) -> str:
    return (
        f"Pod {pod} exists and does not belong to this snapshot. Delete it, or the object that creates it (its "
        "metadata.ownerReferences)."
    )


def snapshot_name_taken(name: str) -> str:
    return (
        f"StreamSnapshot {name} exists and does not belong to the schedule of this application, whose snapshot is not "
        "taken until then. If nobody needs that one, delete it; with its spec.deletionPolicy Delete, its files go too."
    )


def snapshot_refused(name: str, answer: str) -> str:
    return f"The API server refuses StreamSnapshot {name}: {answer.rstrip('.')}. Correct what it names."


def snapshot_not_created(name: str, answer: str) -> str:
    return not_created(f"StreamSnapshot {name}", answer)


def not_created(what: str, answer: str) -> str:
    return (
        f"The API server could not create {what}: {answer.rstrip('.')}. If it lasts, correct what it names; "
        "Tidegate retries."
    )


def waits(what: str, answer: Failure) -> str:
    """Return the text about what is created as soon as the API server lets it be, and until then waits."""
    return (refused if isinstance(answer, Forbidden) else not_created)(what, answer.message)


def message_of_channel(name: str) -> str:
    return f"ControlMessage {name} for a message from a channel"


def message_name_taken(name: str) -> str:
    return f"there is another ControlMessage {name}"


def unreadable(problem: str) -> str:
    return f"The resource cannot be read: {problem}. Correct the field; nothing is done until then."


def files_retained(problem: str) -> str:
    return f"The files of the snapshot were not deleted: the resource cannot be read ({problem})."
