"""Objects of any cluster, by the names that kubectl takes, read and written in this process. Does network I/O.

A kubectl process costs 90 ms of processor time, a request here one or two: who asks again and again asks here.
"""

from __future__ import annotations

import contextlib
import json
import os
import ssl
import time
import urllib.parse
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import urllib3

from devcluster.kinds import Resource, first_named, full_name, read_resource

T = TypeVar("T")
Object = Mapping[str, Any]
Objects = list[dict[str, Any]]

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_CONTENT = {"POST": "application/json", "DELETE": "application/json", "PATCH": "application/merge-patch+json"}
_TIMEOUT = urllib3.Timeout(connect=10, read=60)
_UNTIL_THE_SERVER_ENDS_IT = urllib3.Timeout(connect=10, read=None)
_ATTEMPTS = 10
_LONGEST_PAUSE = 5.0
_CLUSTER_FIELDS, _USER_FIELDS = {"server", "certificate-authority-data"}, {"token"}
_CLIENTS_KEPT = 32


class RequestFailedError(OSError):
    """The API server refused, or could not be asked; the text is nearly that of kubectl.

    Attributes:
        status: the HTTP status; 0 if there was no answer.
        reason: of the Status that the server answered with; empty if it answered with something else.
    """

    def __init__(self, text: str, status: int = 0, reason: str = "") -> None:
        """Keep what the server said."""
        super().__init__(text)
        self.status, self.reason = status, reason


class UnknownKindError(RequestFailedError):
    """The API server serves nothing of this name."""


@dataclass(frozen=True)
class Server:
    """Where an API server is, and how to show it who asks.

    Attributes:
        address: without a slash at its end.
        namespace: of who names none.
        reads: keeps connections.
        writes: has one for each request.
        identity: returns the headers that say who asks; they may change as tokens are renewed.
    """

    address: str
    namespace: str
    reads: urllib3.PoolManager
    writes: urllib3.PoolManager
    identity: Callable[[], Mapping[str, str]]


class KubeApi:
    """The objects of one cluster. Safe for threads.

    It fails where a kubectl process would: reads go over connections that are kept, and one that the server has dropped
    meanwhile is replaced silently. What changes something goes over a connection of its own and is sent once, so
    that nobody need ask whether it arrived on the dropped one.
    """

    def __init__(self, server: Server) -> None:
        """Know nothing yet of what the server serves; it is asked for when the first name is looked up."""
        self._server = server
        self._known: Sequence[Resource] | None = None

    # --- objects ------------------------------------------------------------------------------------------------------

    def get(self, kind: str, name: str, namespace: str = "") -> dict[str, Any] | None:
        """Return an object, or None if there is none; raise RequestFailedError."""

        def read(resource: Resource) -> dict[str, Any] | None:
            try:
                found = shown(self._read(resource.path(self._namespace(namespace), name)))
            except RequestFailedError as refused:
                if refused.reason == "NotFound":
                    return None
                raise
            return found

        return self._served(kind, read)

    def list(self, kinds: str, namespace: str = "", selector: str = "") -> Objects:
        """Return the objects of a kind, or of several with commas between; raise RequestFailedError."""
        return [item for kind in kinds.split(",") for item in self.collection(kind, namespace, selector)[0]]

    def collection(self, kind: str, namespace: str = "", selector: str = "") -> tuple[Objects, str]:
        """Return the objects of one kind, and the version of the whole; raise RequestFailedError."""

        def read(resource: Resource) -> tuple[Objects, str]:
            query = f"?labelSelector={urllib.parse.quote(selector)}" if selector else ""
            found = self._read(resource.path(self._namespace(namespace)) + query)
            # Items of built-in kinds come without what they are.
            what = {"apiVersion": resource.api_version, "kind": resource.kind}
            return [shown({**what, **item}) for item in found["items"]], found["metadata"]["resourceVersion"]

        return self._served(kind, read)

    def create(  # noqa: PLR0913 - what a person can say of it
        self,
        manifest: Object,
        namespace: str = "",
        *,
        manager: str,
        dry_run: bool = False,
        user: str = "",
        groups: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Create an object and return it as stored; raise RequestFailedError. Fields that nobody knows are refused.

        Args:
            manifest: the object; its own namespace goes before ``namespace``.
            namespace: where to create it.
            manager: who owns its fields.
            dry_run: store nothing, and answer as if it were.
            user: as whom, for who may be anybody.
            groups: of that user.
        """
        options = {"fieldValidation": "Strict", "fieldManager": manager}
        query = urllib.parse.urlencode({**options, "dryRun": "All"} if dry_run else options)
        where = manifest["metadata"].get("namespace") or self._namespace(namespace)
        pretended = [("Impersonate-User", user)] * bool(user) + [("Impersonate-Group", group) for group in groups]

        def write(resource: Resource) -> dict[str, Any]:
            return shown(self._write("POST", f"{resource.path(where)}?{query}", manifest, pretended))

        return self._served(full_name(manifest), write)

    def create_text(self, kind: str, namespace: str, text: bytes) -> None:
        """Create an object from what need not be readable JSON; raise RequestFailedError."""

        def write(resource: Resource) -> None:
            self._request(self._server.writes, "POST", resource.path(self._namespace(namespace)), body=text)

        self._served(kind, write)

    def patch(self, kind: str, name: str, namespace: str, change: Object, subresource: str = "") -> dict[str, Any]:
        """Merge ``change`` into an object and return what came of it; raise RequestFailedError."""
        part = f"/{subresource}" if subresource else ""

        def write(resource: Resource) -> dict[str, Any]:
            path = resource.path(self._namespace(namespace), name)
            return shown(self._write("PATCH", f"{path}{part}?fieldManager=kubectl-patch", change))

        return self._served(kind, write)

    def delete(self, kind: str, name: str, namespace: str = "") -> None:
        """Ask for an object's deletion; none is fine. Raise RequestFailedError."""

        def write(resource: Resource) -> None:
            try:
                path = resource.path(self._namespace(namespace), name)
                self._write("DELETE", path, {"propagationPolicy": "Background"})
            except RequestFailedError as refused:
                if refused.reason != "NotFound":
                    raise

        self._served(kind, write)

    def exists(self, manifest: Object) -> bool:
        """Say whether there is an object of a manifest's kind and name; raise RequestFailedError."""
        metadata = manifest["metadata"]
        return self.get(full_name(manifest), metadata["name"], metadata.get("namespace", "")) is not None

    @contextlib.contextmanager
    def changes(self, kind: str, namespace: str, version: str) -> Iterator[urllib3.BaseHTTPResponse]:
        """Watch the objects of one kind from a version on: a response whose lines are events, each one JSON document.

        Raises:
            RequestFailedError: the watch did not begin.
        """
        query = urllib.parse.urlencode({"watch": 1, "resourceVersion": version, "allowWatchBookmarks": "true"})
        path = f"{self.find(kind).path(self._namespace(namespace))}?{query}"
        # Not among the kept ones: whoever ends a watch breaks its connection off.
        answer = self._request(self._server.writes, "GET", path, timeout=_UNTIL_THE_SERVER_ENDS_IT, whole=False)
        try:
            yield answer
        finally:
            answer.close()

    # --- what is served -----------------------------------------------------------------------------------------------

    def find(self, name: str) -> Resource:
        """Return what kubectl means by a name: plural, singular, or short, with the group behind a dot or without it.

        Of several the first that the server names is taken. One that is not known yet is asked for, because a CRD may
        have been installed meanwhile.

        Raises:
            UnknownKindError: the server serves no such thing.
            RequestFailedError: it could not be asked.
        """
        found = first_named(self._known or (), name)
        if found is None:
            self._known = self._discover()
            found = first_named(self._known, name)
        if found is None:
            raise UnknownKindError(f'error: the server doesn\'t have a resource type "{name}"')
        return found

    def _served(self, kind: str, request: Callable[[Resource], T]) -> T:
        resource = self.find(kind)
        try:
            return request(resource)
        except RequestFailedError as refused:
            # The server knows neither kind nor version: the CRD was deleted or replaced since it was asked.
            if refused.status != 404 or refused.reason:
                raise
        self._known = None
        if self.find(kind) == resource:
            raise UnknownKindError(f'error: the server no longer serves "{kind}"', 404)
        return request(self.find(kind))

    def _discover(self) -> Sequence[Resource]:
        groups = [group for root in ("/api", "/apis") for group in self._read(root, _AGGREGATED)["items"]]
        return [
            read_resource(group["metadata"].get("name", ""), version["version"], each)
            for group in groups
            for version in group["versions"]
            for each in version.get("resources", [])
        ]

    # --- requests -----------------------------------------------------------------------------------------------------

    def _namespace(self, namespace: str) -> str:
        return namespace or self._server.namespace

    def _read(self, path: str, accept: str = "application/json") -> Any:
        return json.loads(self._request(self._server.reads, "GET", path, accept=accept).data)

    def _write(self, method: str, path: str, body: Object, headers: Sequence[tuple[str, str]] = ()) -> Any:
        return json.loads(self._request(self._server.writes, method, path, body=body, more=headers).data)

    def _request(  # noqa: PLR0913 - what differs between requests
        self,
        pool: urllib3.PoolManager,
        method: str,
        path: str,
        *,
        body: Object | bytes | None = None,
        accept: str = "application/json",
        more: Sequence[tuple[str, str]] = (),
        timeout: urllib3.Timeout = _TIMEOUT,
        whole: bool = True,
    ) -> urllib3.BaseHTTPResponse:
        headers = urllib3.HTTPHeaderDict({"Accept": accept, **self._server.identity()})
        for name, value in more:
            headers.add(name, value)  # a header for each group
        if body is not None:
            headers["Content-Type"] = _CONTENT[method]
        if pool is self._server.writes:
            headers["Connection"] = "close"
        text = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()

        def send() -> urllib3.BaseHTTPResponse:
            url = self._server.address + path
            options = {"timeout": timeout, "retries": False, "redirect": False, "preload_content": whole}
            return pool.request(method, url, body=text, headers=headers, **options)  # type: ignore[arg-type]

        for attempt in range(_ATTEMPTS):
            try:
                answer = _twice_if_dropped(send) if pool is self._server.reads else send()
            except (urllib3.exceptions.HTTPError, OSError) as failed:
                raise RequestFailedError(f"Unable to connect to the server: {failed}") from failed
            if answer.status < 400:
                return answer
            pause = _asked_to_wait(answer)
            if pause is None or attempt == _ATTEMPTS - 1:
                raise _refusal(answer)
            answer.drain_conn()
            time.sleep(pause)
        raise AssertionError("the last attempt returns or raises")


def shown(stored: dict[str, Any]) -> dict[str, Any]:
    """Return an object as kubectl shows it: without the list of who owns which field."""
    metadata = {key: value for key, value in stored["metadata"].items() if key != "managedFields"}
    return {**stored, "metadata": metadata}


def _twice_if_dropped(send: Callable[[], urllib3.BaseHTTPResponse]) -> urllib3.BaseHTTPResponse:
    try:
        return send()
    except urllib3.exceptions.ProtocolError:
        # A kept connection was dropped just when it was used; the next one is new.
        return send()


def _asked_to_wait(answer: urllib3.BaseHTTPResponse) -> float | None:
    """Return for how many seconds the server asks to wait, as kubectl does: for example while a CRD's storage is made.

    It did nothing with what it answers so.
    """
    pause = answer.headers.get("Retry-After", "")
    if not pause.isdigit() or not (answer.status == 429 or answer.status >= 500):
        return None
    return min(float(pause), _LONGEST_PAUSE)


def _refusal(answer: urllib3.BaseHTTPResponse) -> RequestFailedError:
    text = answer.data.decode(errors="replace")
    try:
        status = json.loads(text)
    except ValueError:
        status = {}
    if not isinstance(status, dict) or status.get("kind") != "Status":
        return RequestFailedError(f"Error from server: {text[:400].strip()}", answer.status)
    reason = str(status.get("reason", ""))
    shown = f"Error from server ({reason})" if reason else "Error from server"
    return RequestFailedError(f"{shown}: {status.get('message', '')}", answer.status, reason)


# --- kubeconfigs ------------------------------------------------------------------------------------------------------


def kube_api(kubeconfig: Path) -> KubeApi:
    """Return the client of the cluster that a kubeconfig leads to now: one for this process while the file stays as is.

    Raises:
        RequestFailedError: there is no such file, or it leads nowhere.
    """
    try:
        found = kubeconfig.stat()
    except OSError as missing:
        raise RequestFailedError(f"error: {missing}") from missing
    # A child process that was forked must not write to its parent's connections.
    return _kept(kubeconfig, (found.st_mtime_ns, found.st_ino, found.st_size), os.getpid())


@lru_cache(maxsize=_CLIENTS_KEPT)
def _kept(kubeconfig: Path, _as_it_is: tuple[int, ...], _process: int) -> KubeApi:
    return KubeApi(_own_server(kubeconfig.read_text()) or _foreign_server(kubeconfig))


def _own_server(text: str) -> Server | None:
    """Read a kubeconfig as this package writes them; None if it is of another form."""
    try:
        content = json.loads(text)
        current = {entry["name"]: entry["context"] for entry in content["contexts"]}[content["current-context"]]
        cluster = {entry["name"]: entry["cluster"] for entry in content["clusters"]}[current["cluster"]]
        user = {entry["name"]: entry["user"] for entry in content["users"]}[current["user"]]
        if set(cluster) - _CLUSTER_FIELDS or set(user) - _USER_FIELDS:
            return None
    except (ValueError, KeyError, TypeError):
        return None
    options: dict[str, Any] = {"maxsize": 8}
    if "certificate-authority-data" in cluster:
        authority = b64decode(cluster["certificate-authority-data"]).decode()
        options["ssl_context"] = ssl.create_default_context(cadata=authority)
    identity = {"Authorization": f"Bearer {user['token']}"} if user else {}
    reads, writes = (urllib3.PoolManager(**options) for _ in range(2))
    return Server(cluster["server"].rstrip("/"), current.get("namespace", "default"), reads, writes, lambda: identity)


def _foreign_server(kubeconfig: Path) -> Server:
    """Have the official client read somebody's kubeconfig, with all that they may hold.

    It is imported here: that takes two seconds of processor time.
    """
    from kubernetes import client, config  # noqa: PLC0415
    from kubernetes.client.rest import RESTClientObject  # noqa: PLC0415

    configuration = client.Configuration()
    try:
        config.load_kube_config(  # type: ignore[no-untyped-call]
            str(kubeconfig), client_configuration=configuration, persist_config=False
        )
        _, context = config.list_kube_config_contexts(str(kubeconfig))  # type: ignore[no-untyped-call]
    except config.ConfigException as unusable:
        raise RequestFailedError(f"error: {unusable}") from unusable

    def identity() -> dict[str, str]:
        settings: Mapping[str, Any] = configuration.auth_settings()
        return {each["key"]: each["value"] for each in settings.values() if each["value"]}

    reads, writes = (RESTClientObject(configuration).pool_manager for _ in range(2))
    namespace = context["context"].get("namespace") or "default"
    return Server(configuration.host.rstrip("/"), namespace, reads, writes, identity)
