"""Takes away, alters or puts back what the operator and the runtime rely on: status, labels, catalog, the resource.

Earlier statuses and catalogs are noted between the faults, as a backup tool or a bucket with versions has them.
"""

import contextlib
import time
from collections.abc import Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any, Protocol, TypeVar

from devcluster import s3
from devcluster.apiclient import ApiRefusedError
from tests.chaos.shots import Shot, TargetGoneError
from tidegate_spark.contract.protocol import LABEL_EPOCH
from tidegate_testing.live_cluster import APPS, LiveCluster
from tidegate_testing.waiting import wait_for

GONE_SECONDS = 300.0
"""The longest that is waited for a deleted resource to be gone: its driver stops at a batch boundary first."""
WRONG_AFTER = 3.0
"""Seconds after which labels that were removed are put back wrong."""
T = TypeVar("T")


class Catalog(Protocol):
    """The object that lists an application's snapshots."""

    def read(self) -> bytes | None:
        """Return it, None if there is none; raise OSError if the store does not answer."""

    def write(self, content: bytes | None) -> None:
        """Put it, whatever is there; None: remove it."""


class StoredCatalog:
    """It as it is in a bucket, by the S3 server, which has notes of its own about each object."""

    def __init__(self, live: LiveCluster, app: str) -> None:
        """Name the one of an application."""
        self._store = s3.client(live.site.s3_endpoint_host, live.site.s3_keys)
        self._bucket, self._key = live.bucket, f"apps/{live.namespace}/{app}/snapshots/catalog.json"

    def read(self) -> bytes | None:
        """Return it, None if there is none."""
        try:
            return self._store.get_object(Bucket=self._bucket, Key=self._key)["Body"].read()
        except self._store.exceptions.NoSuchKey:
            return None

    def write(self, content: bytes | None) -> None:
        """Put it, whatever is there; None: remove it."""
        if content is None:
            self._store.delete_object(Bucket=self._bucket, Key=self._key)
        else:
            self._store.put_object(Bucket=self._bucket, Key=self._key, Body=content)


class Losses:
    """What is lost of one application, each as a shot."""

    def __init__(self, live: LiveCluster, app: str, catalog: Catalog) -> None:
        """Take from ``app``, whose list of snapshots is ``catalog``."""
        self._live, self._catalog = live, catalog
        self._path = APPS.format(live.namespace, app)
        self._statuses: list[Mapping[str, Any]] = []
        self._catalogs: list[bytes] = []

    def note(self) -> None:
        """Note status and catalog as they are, to be put back later; what cannot be read now is left out."""
        with contextlib.suppress(OSError):
            status = self._status()
            if status and status not in self._statuses:
                self._statuses.append(status)
        content = self._catalog.read()
        if content is not None and content not in self._catalogs:
            self._catalogs.append(content)

    def status(self, earlier: float | None = None) -> Shot:
        """Remove the status, or put one back that was noted: 0 the first one, nearly 1 the last one."""
        put_back = None if earlier is None else _pick(self._statuses, earlier, "a status")
        before: dict[str, Any] = {}

        def fire() -> None:
            before.update(self._status())
            # Merged, the fields that an earlier status does not have would stay.
            replace = [{"op": "add", "path": "/status", "value": put_back or {}}]
            self._live.api.call("PATCH", f"{self._path}/status", replace, kind="application/json-patch+json")

        def known_again() -> bool:
            status = self._status()
            return all(status.get(number, -1) >= before.get(number, 0) for number in ("epoch", "lineage"))

        what = "status" if put_back is None else f"status of epoch {put_back.get('epoch')}"
        return Shot(what, fire, past=known_again)

    def labels(self, pod: Mapping[str, Any], put_back: bool) -> Shot:
        """Remove a pod's labels; if they are put back, then with an epoch of before."""
        labels, name, uid = pod["metadata"].get("labels", {}), pod["metadata"]["name"], pod["metadata"]["uid"]
        assert LABEL_EPOCH in labels, f"pod {name} has lost its labels already"
        change = partial(self._change_labels, name, uid)

        def put_back_wrong() -> None:
            time.sleep(WRONG_AFTER)
            with contextlib.suppress(TargetGoneError):
                change({**labels, LABEL_EPOCH: str(int(labels[LABEL_EPOCH]) - 1)})

        def right_again() -> bool:
            found = self._live.pod(name)
            if found is None or found["metadata"]["uid"] != uid:
                return True
            return bool(labels.items() <= found["metadata"].get("labels", {}).items())

        fire = partial(change, None)
        return Shot(f"labels of {name}", fire, past=right_again, **({"heal": put_back_wrong} if put_back else {}))

    def catalog(self, earlier: float | None = None) -> Shot:
        """Remove the catalog and restore it after the outage, or put one back that was noted, as with a status."""
        now = self._catalog.read()
        assert now is not None, "there is no catalog yet"
        if earlier is not None:
            put_back = _pick([it for it in self._catalogs if it != now], earlier, "a catalog")
            return Shot("catalog of earlier", partial(self._catalog.write, put_back))
        newest: list[bytes] = []

        def fire() -> None:
            content = self._catalog.read()
            if content is None:
                raise TargetGoneError("the catalog is gone")
            newest.append(content)
            self._catalog.write(None)

        return Shot("catalog", fire, heal=lambda: self._catalog.write(newest[-1]))

    def resource(self, by_force: bool) -> Shot:
        """Delete the resource, whose storage is retained, and apply it again with startFrom.adopt, as documented."""
        uid = self._live.api.get(self._path)["metadata"]["uid"]
        deleted: list[Mapping[str, Any]] = []

        def fire() -> None:
            deleted.append(self._live.api.get(self._path))
            self._live.api.call(
                "DELETE", self._path, {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
            )
            if by_force:
                with contextlib.suppress(ApiRefusedError):
                    self._live.api.merge(self._path, {"metadata": {"finalizers": None}})

        def gone() -> bool:
            found = self._live.get(self._path)
            return found is None or bool(found["metadata"]["uid"] != uid)

        def heal() -> None:
            wait_for("the resource to be gone", gone, GONE_SECONDS)
            self._live.api.call("POST", self._path.rpartition("/")[0], adopting(deleted[-1]))

        # An epoch is there before: that of a driver which has not stopped yet.
        return Shot(f"resource {uid}", fire, heal, past=lambda: bool(self._status().get("lineage")))

    def _status(self) -> dict[str, Any]:
        found: dict[str, Any] = self._live.api.get(self._path).get("status", {})
        return found

    def _change_labels(self, pod: str, uid: str, labels: Mapping[str, str] | None) -> None:
        path = f"/api/v1/namespaces/{self._live.namespace}/pods/{pod}"
        try:
            # The uid in it is compared: the API server refuses to change it.
            self._live.api.merge(path, {"metadata": {"uid": uid, "labels": labels}})
        except ApiRefusedError as refused:
            if refused.status in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY):
                raise TargetGoneError(f"pod {pod} was replaced: {refused}") from refused
            raise


def adopting(resource: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest by which a deleted resource is applied again and continues from its storage; pure."""
    metadata, spec = resource["metadata"], resource["spec"]
    kept = {field: metadata[field] for field in ("name", "namespace", "labels", "annotations") if field in metadata}
    start = {**spec.get("startFrom", {}), "adopt": True}
    return {
        "apiVersion": resource["apiVersion"],
        "kind": resource["kind"],
        "metadata": kept,
        "spec": {**spec, "startFrom": start},
    }


def _pick(noted: Sequence[T], at: float, what: str) -> T:
    assert noted, f"{what} of earlier was not noted yet"
    return noted[int(at * len(noted))]
