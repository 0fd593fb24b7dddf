"""Lists and deletes pods with the driver's own service account. Talks to the API server."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tidegate_spark.process.environment import SERVICE_ACCOUNT_DIRECTORY
from tidegate_spark.storage import start_variables

EXECUTORS = "spark-role=executor"
"""Spark's own label."""


def _controllers(metadata: dict[str, Any]) -> list[str]:
    """Return the uids of an object's controlling owners."""
    return [owner["uid"] for owner in metadata.get("ownerReferences", []) if owner.get("controller")]


def executors_of(pods: dict[str, Any], prefix: str, pod_uid: str) -> Iterator[dict[str, Any]]:
    """Yield the executors in a PodList that a driver's pod owns, whatever their labels say."""
    for pod in pods.get("items", []):
        metadata = pod["metadata"]
        if metadata["name"].startswith(f"{prefix}-exec-") and pod_uid and pod_uid in _controllers(metadata):
            yield pod


class PodsApi:
    """List and delete pods, as the pod's own service account."""

    def __init__(self, namespace: str, server: str) -> None:
        """Read the account's token as it is now: the kubelet renews it within the hour."""
        self._pods = f"{server}/api/v1/namespaces/{namespace}/pods"
        self._tls = ssl.create_default_context(cafile=f"{SERVICE_ACCOUNT_DIRECTORY}/ca.crt")
        self._token = Path(SERVICE_ACCOUNT_DIRECTORY, "token").read_text(encoding="utf-8").strip()

    def list(self, selector: str) -> dict[str, Any]:
        """Return the namespace's pods with these labels, as a PodList."""
        query = urllib.parse.urlencode({"labelSelector": selector})
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
        # A proxy that the script sets for its own requests need not reach the API server.
        proxies = urllib.request.ProxyHandler(start_variables.proxies_for(url))
        opener = urllib.request.build_opener(proxies, urllib.request.HTTPSHandler(context=self._tls))
        with opener.open(request, timeout=10) as answer:
            read: bytes = answer.read()
        return read
