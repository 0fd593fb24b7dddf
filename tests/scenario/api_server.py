"""A Kubernetes API server that is a dictionary: resource versions, preconditions, finalizers, grace periods, watches.

It does what the operator and the simulated cluster rely on, and nothing else; one contract suite holds it and a real
API server to the same behaviour. Bodies are values: nobody changes one in place.
"""

import asyncio
import base64
import bisect
import functools
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

import msgspec

Body = dict[str, Any]

PODS, APPS, SECRETS, MESSAGES = "pods", "streamingapps", "secrets", "controlmessages"
_WITH_STATUS = frozenset({PODS, APPS, MESSAGES})
_KINDS = {
    PODS: "Pod",
    APPS: "StreamingApp",
    SECRETS: "Secret",
    MESSAGES: "ControlMessage",
    "events": "Event",
    "serviceaccounts": "ServiceAccount",
    "roles": "Role",
    "rolebindings": "RoleBinding",
    "configmaps": "ConfigMap",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "limitranges": "LimitRange",
    "resourcequotas": "ResourceQuota",
}
_DEFAULT_GRACE = 30
# What a pod's spec may have; what is deeper in it is not looked at.
_FIELDS = """
    activeDeadlineSeconds affinity automountServiceAccountToken containers dnsConfig dnsPolicy enableServiceLinks
    ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostUsers hostname imagePullSecrets initContainers
    nodeName nodeSelector os overhead preemptionPolicy priority priorityClassName readinessGates resourceClaims
    resources restartPolicy runtimeClassName schedulerName schedulingGates securityContext serviceAccount
    serviceAccountName setHostnameAsFQDN shareProcessNamespace subdomain terminationGracePeriodSeconds tolerations
    topologySpreadConstraints volumes
"""
_POD_FIELDS = frozenset(_FIELDS.split())


class RefusedError(Exception):
    """An answer with an HTTP status of 400 or more."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message

    def body(self) -> bytes:
        """Return the Status object that says so."""
        return msgspec.json.encode(
            {"kind": "Status", "status": "Failure", "code": self.code, "reason": self.reason, "message": self.message}
        )


@dataclass(frozen=True, slots=True)
class Place:
    """What a path stands for; ``name`` is empty for a collection."""

    collection: str
    plural: str
    namespace: str
    name: str = ""
    part: str = ""

    @property
    def path(self) -> str:
        """The object's path, without a subresource."""
        return f"{self.collection}/{self.name}"


@dataclass(slots=True)
class Change:
    """One event of a watch."""

    type: str
    version: int
    place: Place
    body: Body
    before: Body | None
    at: float

    @property
    def labels(self) -> dict[str, str]:
        """The object's labels."""
        found: dict[str, str] = self.body["metadata"].get("labels", {})
        return found


@functools.lru_cache(4096)
def place_of(path: str) -> Place:
    """Return what a path without its query stands for."""
    parts = path.strip("/").split("/")
    at = parts.index("namespaces") if "namespaces" in parts else -1
    if at < 0:
        return Place(path, parts[-1], "")
    end = at + 3
    collection = "/" + "/".join(parts[:end])
    return Place(collection, parts[at + 2], parts[at + 1], *parts[end : end + 2])


def merge(target: Any, patch: Any) -> Any:
    """Return the JSON merge patch (RFC 7386) of a value."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


@dataclass
class ApiServer:
    """The objects, and everything that ever happened to them."""

    clock: Callable[[], float]
    namespaces: set[str] = field(default_factory=set)
    admit: Callable[[Place, Body], None] = lambda place, body: None
    """Raises RefusedError for what quotas and the like refuse."""
    objects: dict[str, Body] = field(default_factory=dict)
    listeners: list[Callable[[Change], None]] = field(default_factory=list)
    logs: dict[str, list[Change]] = field(default_factory=dict)
    """What happened to the objects of each kind."""
    born: dict[str, int] = field(default_factory=dict)
    """In which version each object came, by its uid; of those that are gone, too."""
    by: str = ""
    """Whose request is being handled; empty for what the world does itself."""
    version: int = 1
    oldest: int = 0
    """Watches from before this version are told that it has expired."""
    _serial: int = 0
    _waiting: dict[str, list[asyncio.Future[None]]] = field(default_factory=dict)
    """The watches of each kind that have told everything."""
    _sorted: dict[str, list[Body]] = field(default_factory=dict)
    _encoded: dict[str, tuple[Body, bytes]] = field(default_factory=dict)

    # --- requests as HTTP sees them ---

    def handle(self, method: str, path: str, body: bytes | None, by: str = "") -> tuple[int, bytes]:
        """Return status and body of the answer to one request of somebody."""
        self.by = by
        try:
            return self._handle(method, path, body)
        except RefusedError as refused:
            return refused.code, refused.body()
        finally:
            self.by = ""

    def _handle(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        bare, _, query = path.partition("?")
        place = place_of(bare)
        if method == "GET":
            return (200, self._list(place, query)) if not place.name else (200, self.encoded(self._find(place)))
        change = msgspec.json.decode(body) if body else {}
        if method == "POST" and place.part == "binding":
            self.bind(place.path, change["target"]["name"])
            return 201, b'{"kind":"Status","status":"Success"}'
        if method == "POST":
            wishes = query.split("&")
            if place.plural == PODS:
                change = _with_known_fields(change, strict="fieldValidation=Strict" in wishes)
            if "dryRun=All" in wishes:
                return 201, msgspec.json.encode(self.create(bare, change, dry=True))
            return 201, self.encoded(self.create(bare, change))
        if method == "PATCH":
            return 200, self.encoded(self.patch(bare, change))
        wanted = change.get("preconditions", {})
        left = self.delete(
            bare,
            uid=wanted.get("uid", ""),
            version=wanted.get("resourceVersion", ""),
            grace=change.get("gracePeriodSeconds"),
        )
        return 200, self.encoded(left) if left else b'{"kind":"Status","status":"Success"}'

    def encoded(self, body: Body) -> bytes:
        """Return an object as JSON."""
        uid = body["metadata"]["uid"]
        known = self._encoded.get(uid)
        if known is None or known[0] is not body:
            known = self._encoded[uid] = (body, msgspec.json.encode(body))
        return known[1]

    def _list(self, place: Place, query: str) -> bytes:
        wanted, about = _wanted_labels(query), dict(parse_qsl(query)).get("fieldSelector", "")
        found = [
            body
            for body in self.all(place.plural, place.namespace)
            if all(body["metadata"].get("labels", {}).get(key) == value for key, value in wanted)
            and about in ("", f"involvedObject.uid={body.get('involvedObject', {}).get('uid')}")
        ]
        head = b'{"kind":"List","metadata":{"resourceVersion":"%d"},"items":[' % self.version
        return head + b",".join(map(self.encoded, found)) + b"]}"

    # --- the same as functions ---

    def all(self, plural: str, namespace: str = "") -> list[Body]:
        """Return all objects of a kind, in the order of their paths."""
        known = self._sorted.get(plural)
        if known is None:
            paths = sorted(path for path in self.objects if place_of(path).plural == plural)
            known = self._sorted[plural] = [self.objects[path] for path in paths]
        return [body for body in known if namespace in ("", body["metadata"]["namespace"])]

    def find(self, path: str) -> Body | None:
        """Return an object, or None."""
        return self.objects.get(path)

    def create(self, collection: str, manifest: Body, *, dry: bool = False) -> Body:
        """Create an object, or only say what would come of it."""
        place = place_of(f"{collection}/{manifest['metadata']['name']}")
        if place.namespace not in self.namespaces:
            raise RefusedError(404, "NotFound", f'namespaces "{place.namespace}" not found')
        self.admit(place, manifest)
        if place.path in self.objects:
            raise RefusedError(409, "AlreadyExists", f'{place.plural} "{place.name}" already exists')
        self._serial += 1
        given = {key: value for key, value in manifest["metadata"].items() if key != "resourceVersion"}
        metadata = {**given, "uid": f"uid-{self._serial:04d}", "creationTimestamp": self._time(), "generation": 1}
        body = {**manifest, "metadata": metadata}
        if place.plural in _WITH_STATUS:
            body.pop("status", None)
        if place.plural == PODS:
            body["status"] = {"phase": "Pending"}
        if place.plural == SECRETS and "stringData" in body:
            plain = {key: base64.b64encode(value.encode()).decode() for key, value in body.pop("stringData").items()}
            body["data"] = {**body.get("data", {}), **plain}
        return body if dry else self._store("ADDED", place, body, None)

    def patch(self, path: str, change: Body) -> Body:
        """Apply a merge patch to an object, or to its status if the path ends so."""
        place = place_of(path)
        old = self._find(place)
        named = change.get("metadata") or {}
        self._check(place, old, "", named.get("resourceVersion", ""))
        if not place.part and named.get("uid", old["metadata"]["uid"]) != old["metadata"]["uid"]:
            raise RefusedError(422, "Invalid", "metadata.uid: field is immutable")
        new = self._patched(place, old, change)
        if new == old:
            return old
        if "deletionTimestamp" in new["metadata"] and not new["metadata"].get("finalizers") and place.plural != PODS:
            self._remove(place, new)
            return new  # with the version it had before
        return self._store("MODIFIED", place, new, old)

    def _patched(self, place: Place, old: Body, change: Body) -> Body:
        if place.part == "status":
            return merge(old, {"status": change.get("status")})  # type: ignore[no-any-return] # a body stays a body
        if place.plural in _WITH_STATUS:
            change = {key: value for key, value in change.items() if key != "status"}
        new: Body = merge(old, change)
        before, after = old["metadata"], new["metadata"]
        constant = ("uid", "resourceVersion", "creationTimestamp", "generation", "deletionTimestamp", "name")
        new["metadata"] = {**after, **{key: before[key] for key in constant if key in before}}
        if "deletionTimestamp" in before and set(after.get("finalizers", ())) - set(before.get("finalizers", ())):
            raise RefusedError(422, "Invalid", "metadata.finalizers: no new finalizers if the object is being deleted")
        if place.plural == APPS and new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] = before["generation"] + 1
        return new

    def set_status(self, path: str, status: Body) -> None:
        """Replace an object's status, as its controller or kubelet does."""
        old = self.objects[path]
        if old.get("status") != status:
            self._store("MODIFIED", place_of(path), {**old, "status": status}, old)

    def bind(self, path: str, node: str) -> None:
        """Give a pod to a node, as the scheduler does."""
        old = self.objects[path]
        bound = {"type": "PodScheduled", "status": "True"}
        new = {**old, "spec": {**old["spec"], "nodeName": node}, "status": {**old["status"], "conditions": [bound]}}
        self._store("MODIFIED", place_of(path), new, old)

    def delete(self, path: str, *, uid: str = "", version: str = "", grace: int | None = None) -> Body | None:
        """Delete an object, or begin to; returns what is left of it (a pod: also its last state), or None."""
        place = place_of(path)
        old = self._find(place)
        self._check(place, old, uid, version)
        if place.plural == PODS:
            return self._delete_pod(place, old, grace)
        if not old["metadata"].get("finalizers"):
            self._remove(place, old)
            return None
        if "deletionTimestamp" in old["metadata"]:
            return old
        new = {
            **old,
            "metadata": {**old["metadata"], "deletionTimestamp": self._time(), "deletionGracePeriodSeconds": 0},
        }
        new["metadata"]["generation"] += 1
        return self._store("MODIFIED", place, new, old)

    def _delete_pod(self, place: Place, old: Body, grace: int | None) -> Body:
        seconds = grace if grace is not None else old["spec"].get("terminationGracePeriodSeconds", _DEFAULT_GRACE)
        if not old["spec"].get("nodeName") or old["status"].get("phase") in ("Succeeded", "Failed"):
            seconds = 0
        known = old["metadata"]
        ending = {**known, "deletionTimestamp": self._time(seconds), "deletionGracePeriodSeconds": seconds}
        if known.get("deletionGracePeriodSeconds", seconds + 1) > seconds:
            old = self._store("MODIFIED", place, {**old, "metadata": ending}, old)
        return old if seconds else self._remove(place, old)

    def _find(self, place: Place) -> Body:
        found = self.objects.get(place.path)
        if found is None:
            raise RefusedError(404, "NotFound", f'{place.plural} "{place.name}" not found')
        return found

    def _check(self, place: Place, body: Body, uid: str, version: str) -> None:
        known = body["metadata"]
        if (uid and uid != known["uid"]) or (version and version != known["resourceVersion"]):
            raise RefusedError(409, "Conflict", f'Operation cannot be fulfilled on {place.plural} "{place.name}"')

    def _store(self, what: str, place: Place, body: Body, before: Body | None) -> Body:
        self.version += 1
        stored = {"kind": _KINDS[place.plural], **body}
        stored["metadata"] = {**body["metadata"], "resourceVersion": str(self.version)}
        self.objects[place.path] = stored
        if before is None:
            self.born[stored["metadata"]["uid"]] = self.version
        self._note(Change(what, self.version, place, stored, before, self.clock()))
        return stored

    def _remove(self, place: Place, last: Body) -> Body:
        self.version += 1
        before = self.objects.pop(place.path)
        gone = {**last, "metadata": {**last["metadata"], "resourceVersion": str(self.version)}}
        self._note(Change("DELETED", self.version, place, gone, before, self.clock()))
        return gone

    def put_back(self, path: str, body: Body) -> None:
        """Have an object as it was once, with its uid; in a new version, because who knew a later one ends."""
        self._store("MODIFIED" if path in self.objects else "ADDED", place_of(path), body, self.objects.get(path))

    def vanish(self, path: str) -> None:
        """Have an object not be there, whatever finalizers it has."""
        self._remove(place_of(path), self.objects[path])

    def _note(self, change: Change) -> None:
        plural = change.place.plural
        self._sorted.pop(plural, None)
        self.logs.setdefault(plural, []).append(change)
        self._wake(self._waiting.pop(plural, ()))
        for listener in self.listeners:
            listener(change)

    def _time(self, after: float = 0.0) -> str:
        return time_at(int(self.clock() + after))

    # --- watches ---

    def nudge(self) -> None:
        """Have every watch look whether it is broken."""
        for waiting in self._waiting.values():
            self._wake(waiting)
        self._waiting.clear()

    def _wake(self, waiting: Iterable[asyncio.Future[None]]) -> None:
        for each in waiting:
            if not each.done():
                each.set_result(None)

    async def watch(self, plural: str, since: int, broken: Callable[[], bool]) -> AsyncIterator[Change]:
        """Yield every change of a kind after a version, until the connection breaks.

        Raises:
            RefusedError: 410, the version has expired.
        """
        if since < self.oldest:
            raise RefusedError(410, "Expired", "too old resource version")
        log = self.logs.setdefault(plural, [])
        at = bisect.bisect_right(log, since, key=_version_of)
        while not broken():
            while at < len(log):
                at += 1
                yield log[at - 1]
            news = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(plural, []).append(news)
            await news


@functools.lru_cache(256)
def time_at(seconds: int) -> str:
    """Return a time, given in seconds since the epoch, as the API server writes it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _with_known_fields(pod: Body, *, strict: bool) -> Body:
    """Return a pod without the fields that no pod has."""
    spec = pod.get("spec", {})
    unknown = [name for name in spec if name not in _POD_FIELDS]
    if unknown and strict:
        named = ", ".join(f'unknown field "spec.{name}"' for name in unknown)
        message = f'Pod in version "v1" cannot be handled as a Pod: strict decoding error: {named}'
        raise RefusedError(400, "BadRequest", message)
    return {**pod, "spec": {name: value for name, value in spec.items() if name in _POD_FIELDS}} if unknown else pod


@functools.lru_cache(64)
def _wanted_labels(query: str) -> tuple[tuple[str, str], ...]:
    pairs = dict(parse_qsl(query)).get("labelSelector", "").split(",")
    return tuple((key, value) for key, _, value in (pair.partition("=") for pair in pairs if pair))


def _version_of(change: Change) -> int:
    return change.version
