"""Kubernetes as a user has it: what kubectl does. What tests do again and again runs in this process. Does I/O."""

import contextlib
import itertools
import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devcluster.kubeapi import KubeApi, RequestFailedError, UnknownKindError, kube_api

Manifest = Mapping[str, Any]
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class KubectlError(AssertionError):
    """kubectl said no; the text is what it printed, or nearly."""


@dataclass(frozen=True)
class Kubectl:
    """kubectl for one cluster.

    ``run`` is a process, for what a person types; everything else is requests of this process with the same effect, and
    fails as kubectl does: with KubectlError, also if there is no API server just then.
    """

    binary: Path
    kubeconfig: Path

    def run(self, *arguments: str, stdin: str | None = None, timeout: float = 60) -> str:
        """Return what kubectl printed; raise KubectlError with its words if it failed."""
        done = subprocess.run(
            [str(self.binary), "--kubeconfig", str(self.kubeconfig), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if done.returncode != 0:
            raise KubectlError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    @property
    def api(self) -> KubeApi:
        """The objects of the cluster; raise RequestFailedError if the kubeconfig leads nowhere."""
        return kube_api(self.kubeconfig)

    def apply(self, *manifests: Manifest) -> str:
        """Apply manifests as ``kubectl apply -f -`` does, and return what it prints.

        What is new is created as kubectl creates it. What is there already is kubectl's work: it merges what was
        applied last, what is there, and what is to be.
        """
        printed, refused = [], []
        for new, group in itertools.groupby(manifests, self._is_new):
            for each in [(manifest,) for manifest in group] if new else [tuple(group)]:
                try:
                    printed.append(self._create_as_applied(*each) if new else self._apply_again(each))
                except KubectlError as error:
                    refused.append(str(error))
        if refused:
            raise KubectlError("\n".join(refused))
        return "".join(printed)

    def create(
        self,
        manifest: Manifest,
        namespace: str = "",
        *,
        dry_run: bool = False,
        user: str = "",
        groups: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Create an object as ``kubectl create`` does and return it as stored.

        Args:
            manifest: the object; its own namespace goes before ``namespace``.
            namespace: where to create it.
            dry_run: store nothing, and answer as if it were.
            user: as whom (``--as``).
            groups: of that user (``--as-group``).
        """
        with _as_kubectl(f"create {manifest['kind']}"):
            return self.api.create(
                manifest, namespace, manager="kubectl-create", dry_run=dry_run, user=user, groups=groups
            )

    def may(self, verb: str, resource: str, namespace: str, user: str, *, name: str = "") -> bool:
        """Say whether a user may do something, as ``kubectl auth can-i`` asks; ``resource`` may name a subresource."""
        plain, _, subresource = resource.partition("/")
        with _as_kubectl(f"auth can-i {verb} {resource}"):
            found = self.api.find(plain)
        what = {"group": found.group, "resource": found.plural, "subresource": subresource, "name": name}
        question = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "metadata": {},
            "spec": {"resourceAttributes": {"namespace": namespace, "verb": verb, **what}},
        }
        return bool(self.create(question, user=user)["status"]["allowed"])

    def get(self, kind: str, name: str, namespace: str) -> dict[str, Any] | None:
        """Return the object, or None if there is none."""
        with _as_kubectl(f"get {kind} {name} -n {namespace}"):
            return self.api.get(kind, name, namespace)

    def list(self, kind: str, namespace: str, selector: str = "") -> list[dict[str, Any]]:
        """Return the objects of a kind (or of several, comma-separated) in a namespace."""
        with _as_kubectl(f"get {kind} -n {namespace} -l {selector!r}"):
            return self.api.list(kind, namespace, selector)

    def patch(self, kind: str, name: str, namespace: str, change: Manifest) -> None:
        """Merge ``change`` into the object."""
        with _as_kubectl(f"patch {kind} {name} -n {namespace}"):
            self.api.patch(kind, name, namespace, change)

    def patch_status(self, kind: str, name: str, namespace: str, status: Manifest) -> dict[str, Any]:
        """Merge ``status`` into the object's, as a controller or a kubelet does; return the object."""
        with _as_kubectl(f"patch {kind} {name} -n {namespace} --subresource=status"):
            return self.api.patch(kind, name, namespace, {"status": status}, "status")

    def delete(self, kind: str, name: str, namespace: str, *arguments: str) -> None:
        """Ask for the object's deletion without waiting for its end; none is fine."""
        if arguments:
            self.run("delete", kind, name, "-n", namespace, "--wait=false", "--ignore-not-found", *arguments)
            return
        with _as_kubectl(f"delete {kind} {name} -n {namespace}"):
            self.api.delete(kind, name, namespace)

    def condition(self, app: Manifest, kind: str) -> dict[str, Any]:
        """Return one condition of a StreamingApp's status; empty if it has none yet."""
        found = [c for c in app.get("status", {}).get("conditions", []) if c["type"] == kind]
        return found[0] if found else {}

    def _is_new(self, manifest: Manifest) -> bool:
        with _as_kubectl("apply"):
            try:
                return "name" in manifest["metadata"] and not self.api.exists(manifest)
            except UnknownKindError:
                return False  # kubectl says so of this one, and goes on with the others

    def _create_as_applied(self, manifest: Manifest) -> str:
        metadata = {"annotations": {}, **manifest["metadata"]}
        applied = json.dumps({**manifest, "metadata": metadata}, separators=(",", ":"), sort_keys=True)
        annotations = {**metadata["annotations"], LAST_APPLIED: f"{applied}\n"}
        marked = {**manifest, "metadata": {**metadata, "annotations": annotations}}
        with _as_kubectl(f"apply {manifest['kind']}"):
            self.api.create(marked, manager="kubectl-client-side-apply")
        return f"{manifest['kind'].lower()}/{metadata['name']} created\n"

    def _apply_again(self, manifests: Sequence[Manifest]) -> str:
        return self.run("apply", "-f", "-", stdin=_as_list(manifests))


@contextlib.contextmanager
def _as_kubectl(arguments: str) -> Iterator[None]:
    try:
        yield
    except RequestFailedError as failed:
        raise KubectlError(f"kubectl {arguments}: {failed}") from failed


def write_kubeconfig(folder: Path, address: str) -> Path:
    """Write a kubeconfig that leads to a server without TLS, and return its path."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": address}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "users": [{"name": "it", "user": {}}],
    }
    written = folder / "kubeconfig"
    written.write_text(json.dumps(config))
    return written


def _as_list(manifests: Sequence[Manifest]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)})
