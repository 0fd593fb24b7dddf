"""Removes pods that were observed, and no others. Does I/O."""

from __future__ import annotations

import msgspec

from tidegate.act.outcome import LookAgain, Outcome
from tidegate.kube.client import KubeClient
from tidegate.kube.failures import FAILURES, Conflict, NotFound
from tidegate.kube.paths import item
from tidegate.observe.index import Index
from tidegate.observe.pods import Pod, PodRecord, build_record
from tidegate.workqueue import RetryLaterError


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
        return LookAgain("the pod is gone")
    if isinstance(answer, Conflict):
        return await _read_anew(client, index, pod, path)
    if isinstance(answer, FAILURES):
        raise RetryLaterError(f"deletion of pod {pod.name}: {answer}")
    if msgspec.json.decode(answer, type=_Deleted).kind == "Pod":
        index.put_pod(build_record(msgspec.json.decode(answer, type=Pod)))
    return None


async def _read_anew(client: KubeClient, index: Index, pod: PodRecord, path: str) -> Outcome:
    answer = await client.get(path, Pod)
    if isinstance(answer, NotFound):
        index.remove_pod(pod)
    elif isinstance(answer, FAILURES):
        raise RetryLaterError(f"read of pod {pod.name}: {answer}")
    else:
        if answer.metadata.uid != pod.uid:
            index.remove_pod(pod)
        index.put_pod(build_record(answer))
    return LookAgain("the pod has changed")
