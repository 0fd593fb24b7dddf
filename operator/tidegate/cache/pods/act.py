"""Creates, deletes and patches pods, under the version that was observed. Does I/O."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import structlog

from tidegate.cache.index import Index
from tidegate.engine.outcome import ObserveAgain, Outcome
from tidegate.engine.workqueue import RetryLaterError
from tidegate.kube.client import KubeClient
from tidegate.kube.failures import FAILURES, Conflict, Forbidden, Invalid, NotFound
from tidegate.kube.paths import item
from tidegate.pods.records.metadata import labels_of_pod
from tidegate.pods.records.read_pods import Pod, build_record
from tidegate.pods.records.record import PodRecord

log = structlog.get_logger()


class _Deleted(msgspec.Struct):
    kind: str = ""


async def delete_pod(client: KubeClient, index: Index, pod: PodRecord) -> Outcome:
    """Ask for the end of a pod, if it is as it was observed.

    Raises:
        RetryLaterError: the API server cannot now.
    """
    path = item("Pod", pod.namespace, pod.name)
    answer = await client.delete(path, pod.uid, pod.resource_version)
    if isinstance(answer, NotFound):
        index.remove_pod(pod)
        return ObserveAgain("the pod is gone")
    if isinstance(answer, Conflict):
        return await _read_again(client, index, pod, path)
    if isinstance(answer, FAILURES):
        raise RetryLaterError(f"deletion of pod {pod.name}: {answer}")
    if msgspec.json.decode(answer, type=_Deleted).kind == "Pod":
        index.put_pod(build_record(msgspec.json.decode(answer, type=Pod)))
    return None


async def restore_labels(client: KubeClient, index: Index, pods: Sequence[PodRecord]) -> Outcome:
    """Give pods the labels that they were given, if they are there and are those; other labels are left as they are.

    Returns:
        ObserveAgain if anything is otherwise than it was observed; None if nothing could be restored.

    Raises:
        RetryLaterError: the API server cannot now.
    """
    outcomes = [await _restore_labels(client, index, pod) for pod in pods]
    return next((outcome for outcome in outcomes if outcome is not None), None)


async def _restore_labels(client: KubeClient, index: Index, pod: PodRecord) -> Outcome:
    path, labels = item("Pod", pod.namespace, pod.name), labels_of_pod(pod.app, pod.role, pod.epoch)
    # Of another uid, the API server refuses it: what has that name now is none that was observed.
    answer = await client.merge_patch(path, {"metadata": {"uid": pod.uid, "labels": labels}}, Pod)
    if isinstance(answer, NotFound):
        index.remove_pod(pod)
        return ObserveAgain("the pod is gone")
    if isinstance(answer, Conflict | Forbidden | Invalid):
        changed = await _read_again(client, index, pod, path)
        if _version_of(pod) not in map(_version_of, index.pods((pod.namespace, pod.app))):
            return changed
        # A role of an earlier chart has no patch. The pod goes on, and is read now and then: no watch reports it.
        log.warning("labels that somebody took off or changed cannot be restored", pod=pod.name, answer=answer.message)
        return None
    if isinstance(answer, FAILURES):
        raise RetryLaterError(f"labels of pod {pod.name}: {answer}")
    index.put_pod(build_record(answer))
    log.info("labels restored that somebody took off or changed", pod=pod.name)
    return ObserveAgain("the pod has its labels again")


def _version_of(pod: PodRecord) -> tuple[str, str]:
    """Return which version of which pod this is."""
    return pod.uid, pod.resource_version


async def _read_again(client: KubeClient, index: Index, pod: PodRecord, path: str) -> Outcome:
    answer = await client.get(path, Pod)
    if isinstance(answer, NotFound):
        index.remove_pod(pod)
    elif isinstance(answer, FAILURES):
        raise RetryLaterError(f"read of pod {pod.name}: {answer}")
    else:
        if answer.metadata.uid != pod.uid:
            index.remove_pod(pod)
        index.put_pod(build_record(answer))
    return ObserveAgain("the pod has changed")
