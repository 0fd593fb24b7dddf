"""Lists the ConfigMaps, Secrets, claims and keys without which the pods of a version do not start. No I/O.

Accounts and classes are left out: a dry run of the pod checks those.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.api.streaming_app import StreamingApp, StreamingAppSpec
from tidegate.pods import messages
from tidegate.pods.admission.admission_error import field_behind
from tidegate.pods.records.metadata import labels

CONFIG_MAP, SECRET, CLAIM = "ConfigMap", "Secret", "PersistentVolumeClaim"
STORAGE_FIELD = "spec.storage.credentialsSecretRef.name"
SECRETS_STORE = "secrets-store.csi.k8s.io"
"""The driver of volumes that makes Secrets when the pod that names them mounts one: they cannot be there before."""
CHANNEL_FIELD = "spec.control.channel.credentialsSecretRef.name"
MAIN_FIELD = "spec.application.mainFrom.configMapKeyRef"


@dataclass(frozen=True, slots=True)
class Reference:
    """An object of the application's namespace, or a key of one, that the spec names."""

    kind: str
    name: str
    key: str = ""
    """Empty: the object itself is all that is needed."""
    field: str = ""
    """Which field of the spec names it."""
    is_spared: bool = False
    """Pods start without it, as what runs may have done: only one that an edit brings in is worth a word."""

    @property
    def target(self) -> tuple[str, str, str]:
        """What it leads to, by whatever field."""
        return self.kind, self.name, self.key

    @property
    def what(self) -> str:
        """What it leads to, in words."""
        return messages.key_of(self.key, self.kind, self.name) if self.key else f"{self.kind} {self.name}"


def references_of(app: StreamingApp, pods: Iterable[tuple[str, Mapping[str, Any]]]) -> tuple[Reference, ...]:
    """Return what a version refers to, each target once, with the first field that names it.

    What Tidegate itself mounts is left out: it makes that with the launch. So is what is optional.

    Args:
        app: the application, with the version.
        pods: its pods, each with its role.
    """
    found: dict[tuple[str, str, str], Reference] = {}
    for each in (*_of_spec(app.spec), *(each for role, pod in pods for each in _of_pod(app, role, pod))):
        known = found.get(each.target)
        if known is None or (known.is_spared and not each.is_spared):
            found[each.target] = each
    return tuple(found.values())


def spared_by(spec: StreamingAppSpec) -> frozenset[str]:
    """Return the Secrets that a version names and whose lack keeps no pod from starting."""
    templates = (spec.pod_template, spec.driver.pod_template, spec.executor.pod_template)
    of_templates = (name for template in templates for _, name in _pull_secrets(_mapping(template.get("spec"))))
    channel = spec.control.channel.credentials_secret_ref
    of_spec = (each.name for each in (*spec.application.image_pull_secrets, *((channel,) if channel else ())))
    return frozenset((*of_templates, *of_spec))


def secret_to_try(app: StreamingApp, name: str) -> dict[str, Any]:
    """Return an empty Secret of a name, whose creation is only tried: that shows whether there is one of that name."""
    metadata = {"name": name, "namespace": app.metadata.namespace, "labels": labels(app.metadata.name)}
    return {"apiVersion": "v1", "kind": SECRET, "metadata": metadata}


def _of_spec(spec: StreamingAppSpec) -> Iterator[Reference]:
    """Yield what the pods mount as optional, so that a process can say what it waits for."""
    storage, channel = spec.storage.credentials_secret_ref, spec.control.channel.credentials_secret_ref
    main = spec.application.main_from
    if main is not None:
        reference = main.config_map_key_ref
        yield Reference(CONFIG_MAP, reference.name, reference.key, MAIN_FIELD)
    if storage is not None:
        yield Reference(SECRET, storage.name, field=STORAGE_FIELD)
    if channel is not None:
        yield Reference(SECRET, channel.name, field=CHANNEL_FIELD, is_spared=True)


@dataclass(frozen=True, slots=True)
class _Found:
    """A reference in a pod, by the path of the field that names it."""

    path: str
    kind: str
    name: str
    key: str = ""
    is_spared: bool = False


def _of_pod(app: StreamingApp, role: str, pod: Mapping[str, Any]) -> Iterator[Reference]:
    spec = _mapping(pod.get("spec"))
    may_be_made = any(
        _text(_mapping(volume.get("csi")), "driver") == SECRETS_STORE for _, volume in _items(spec, "volumes")
    )
    pull_secrets = spared_by(app.spec)
    for each in _in_pod(spec):
        if may_be_made and each.kind == SECRET:
            continue
        if each.is_spared and each.name not in pull_secrets:
            continue  # the installation's: no version can do without it, or bring it
        field = field_behind(each.path, app, role, pod)
        if field:  # else it is Tidegate's own
            yield Reference(each.kind, each.name, each.key, field, each.is_spared)


def _in_pod(spec: Mapping[str, Any]) -> Iterator[_Found]:
    containers = [(f"spec.{key}[{n}]", it) for key in ("initContainers", "containers") for n, it in _items(spec, key)]
    mounted = {
        _text(mount, "name")
        for _, container in containers
        for key in ("volumeMounts", "volumeDevices")
        for _, mount in _items(container, key)
    }
    for number, volume in _items(spec, "volumes"):
        path = f"spec.volumes[{number}]"
        claim = _text(_mapping(volume.get("persistentVolumeClaim")), "claimName")
        if claim:  # the scheduler looks for it even if no container mounts it
            yield _Found(f"{path}.persistentVolumeClaim.claimName", CLAIM, claim)
        if _text(volume, "name") in mounted:
            yield from _in_volume(volume, path)
    for path, container in containers:
        yield from _in_container(container, path)
    for path, name in _pull_secrets(spec):
        yield _Found(path, SECRET, name, is_spared=True)


def _in_volume(volume: Mapping[str, Any], path: str) -> Iterator[_Found]:
    yield from _in_source(_mapping(volume.get("configMap")), f"{path}.configMap", CONFIG_MAP)
    yield from _in_source(_mapping(volume.get("secret")), f"{path}.secret", SECRET, "secretName")
    for number, source in _items(_mapping(volume.get("projected")), "sources"):
        within = f"{path}.projected.sources[{number}]"
        yield from _in_source(_mapping(source.get("configMap")), f"{within}.configMap", CONFIG_MAP)
        yield from _in_source(_mapping(source.get("secret")), f"{within}.secret", SECRET)
    driver = _mapping(_mapping(volume.get("csi")).get("nodePublishSecretRef"))
    yield from _in_source(driver, f"{path}.csi.nodePublishSecretRef", SECRET)


def _in_source(source: Mapping[str, Any], path: str, kind: str, named: str = "name") -> Iterator[_Found]:
    """Yield what files are made of: the keys that are chosen, or the object."""
    name = _text(source, named)
    if not name or source.get("optional") is True:
        return
    keys = [(n, key) for n, item in _items(source, "items") if (key := _text(item, "key"))]
    if not keys:
        yield _Found(f"{path}.{named}", kind, name)
    for number, key in keys:
        yield _Found(f"{path}.items[{number}].key", kind, name, key)


def _in_container(container: Mapping[str, Any], path: str) -> Iterator[_Found]:
    for number, variable in _items(container, "env"):
        within, source = f"{path}.env[{number}].valueFrom", _mapping(variable.get("valueFrom"))
        for field, kind in (("configMapKeyRef", CONFIG_MAP), ("secretKeyRef", SECRET)):
            of_key = _mapping(source.get(field))
            name, key = _text(of_key, "name"), _text(of_key, "key")
            if name and key and of_key.get("optional") is not True:
                yield _Found(f"{within}.{field}", kind, name, key)
    for number, source in _items(container, "envFrom"):
        for field, kind in (("configMapRef", CONFIG_MAP), ("secretRef", SECRET)):
            yield from _in_source(_mapping(source.get(field)), f"{path}.envFrom[{number}].{field}", kind)


def _pull_secrets(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for number, secret in _items(spec, "imagePullSecrets"):
        if name := _text(secret, "name"):
            yield f"spec.imagePullSecrets[{number}].name", name


def _items(parent: Mapping[str, Any], key: str) -> list[tuple[int, Mapping[str, Any]]]:
    # What is no object where there has to be one, the API server refuses; it may not have been asked yet.
    found = parent.get(key)
    return [(n, each) for n, each in enumerate(found) if isinstance(each, Mapping)] if isinstance(found, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(parent: Mapping[str, Any], key: str) -> str:
    value = parent.get(key)
    return value if isinstance(value, str) else ""
