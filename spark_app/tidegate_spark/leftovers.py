"""Removes executor pods that an earlier process of this driver pod left behind. Talks to the API server.

After a restart in place, Spark numbers its executors from 1 again, under the same names; the pods of the process before
are still there, ended or about to end. Spark would not get its first executors.
"""

from __future__ import annotations

import json
import logging
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tidegate_spark.environment import SERVICE_ACCOUNT_DIRECTORY, Environment
from tidegate_spark.protocol import DriverConfig

EXECUTORS = "spark-role=executor"
GRACE_SECONDS = 5
"""An executor without its driver ends by itself; this is for putting its log into storage."""
LONGEST_WAIT_SECONDS = 20.0
POLL_SECONDS = 0.2

log = logging.getLogger("tidegate")


def leftovers(pods: dict[str, Any], prefix: str, pod_uid: str) -> dict[str, str]:
    """Return names and uids, in a PodList, of the executors under ``prefix`` that this driver's pod owns; pure.

    Names and labels are anybody's to choose: what this pod does not own is left alone.
    """
    found = (item["metadata"] for item in pods.get("items", []))
    return {
        each["name"]: each["uid"]
        for each in found
        if each["name"].startswith(f"{prefix}-exec-") and pod_uid and pod_uid in _controllers(each)
    }


def _controllers(metadata: dict[str, Any]) -> list[str]:
    return [owner["uid"] for owner in metadata.get("ownerReferences", []) if owner.get("controller")]


def begin_removal(config: DriverConfig, environment: Environment) -> Callable[[], object]:
    """Remove them in a thread, while everything else starts; the returned function waits until that is done."""
    thread = threading.Thread(target=remove_leftovers, args=(config, environment), name="leftovers", daemon=True)
    thread.start()
    return thread.join


def remove_leftovers(config: DriverConfig, environment: Environment) -> int:
    """Delete executor pods of this epoch that exist already, wait until their names are free, return their number.

    What the API server refuses is logged, not raised: without leftovers, the usual case, nothing is lost.
    """
    prefix, uid, began = config.executor.pod_name_prefix, environment.pod_uid, time.monotonic()
    try:
        api = _PodsApi(config.namespace, environment.master.removeprefix("k8s://"))
        found = leftovers(api.list(), prefix, uid)
        for name, its in found.items():
            api.delete(name, its, GRACE_SECONDS)
        deadline = time.monotonic() + LONGEST_WAIT_SECONDS
        while found and (left := leftovers(api.list(), prefix, uid)):
            if time.monotonic() > deadline:
                # Their node does not answer; the processes have lost their driver in any case.
                for name, its in left.items():
                    api.delete(name, its, 0)
                break
            time.sleep(POLL_SECONDS)
    except OSError as error:
        log.warning("executors of an earlier process could not be removed: %s", error)
        return 0
    if found:
        took = time.monotonic() - began
        log.info("removed executors of an earlier process in %.1f s: %s", took, ", ".join(found))
    return len(found)


class _PodsApi:
    """List and delete pods, as the pod's own service account."""

    def __init__(self, namespace: str, server: str) -> None:
        self._pods = f"{server}/api/v1/namespaces/{namespace}/pods"
        self._tls = ssl.create_default_context(cafile=f"{SERVICE_ACCOUNT_DIRECTORY}/ca.crt")
        self._token = Path(SERVICE_ACCOUNT_DIRECTORY, "token").read_text(encoding="utf-8").strip()

    def list(self) -> dict[str, Any]:
        """Return the namespace's executors as a PodList."""
        query = urllib.parse.urlencode({"labelSelector": EXECUTORS})
        answer: dict[str, Any] = json.loads(self._call("GET", f"{self._pods}?{query}"))
        return answer

    def delete(self, name: str, uid: str, grace_seconds: int) -> None:
        """Delete one pod; one that is gone, or has another in its place, is fine."""
        options = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "gracePeriodSeconds": grace_seconds,
            "preconditions": {"uid": uid},
        }
        try:
            self._call("DELETE", f"{self._pods}/{name}", json.dumps(options).encode())
        except urllib.error.HTTPError as error:
            if error.code not in (404, 409):
                raise

    def _call(self, method: str, url: str, body: bytes | None = None) -> bytes:
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Accept": "application/json",
            "Content-Type": "application/json",
        }
        request = urllib.request.Request(url, data=body, method=method, headers=headers)  # noqa: S310 - the API server
        with urllib.request.urlopen(request, timeout=10, context=self._tls) as answer:  # noqa: S310 - likewise
            read: bytes = answer.read()
        return read
