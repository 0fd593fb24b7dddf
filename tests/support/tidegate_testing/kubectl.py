"""Kubernetes as a user has it: through kubectl. Runs processes."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Manifest = Mapping[str, Any]


class KubectlError(AssertionError):
    """kubectl said no; the text is what it printed."""


@dataclass(frozen=True)
class Kubectl:
    """kubectl for one cluster."""

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

    def apply(self, *manifests: Manifest) -> str:
        """Apply manifests as ``kubectl apply -f -`` does."""
        return self.run("apply", "-f", "-", stdin=_as_list(manifests))

    def get(self, kind: str, name: str, namespace: str) -> dict[str, Any] | None:
        """Return the object, or None if there is none."""
        text = self.run("get", kind, name, "-n", namespace, "-o", "json", "--ignore-not-found")
        return json.loads(text) if text.strip() else None

    def list(self, kind: str, namespace: str, selector: str = "") -> list[dict[str, Any]]:
        """Return the objects of a kind (or of several, comma-separated) in a namespace."""
        text = self.run("get", kind, "-n", namespace, "-o", "json", *(["-l", selector] if selector else []))
        items: list[dict[str, Any]] = json.loads(text)["items"]
        return items

    def patch(self, kind: str, name: str, namespace: str, change: Manifest) -> None:
        """Merge ``change`` into the object."""
        self.run("patch", kind, name, "-n", namespace, "--type", "merge", "-p", json.dumps(change))

    def delete(self, kind: str, name: str, namespace: str, *arguments: str) -> None:
        """Ask for the object's deletion without waiting for its end."""
        self.run("delete", kind, name, "-n", namespace, "--wait=false", "--ignore-not-found", *arguments)

    def condition(self, app: Manifest, kind: str) -> dict[str, Any]:
        """Return one condition of a StreamingApp's status; empty if it has none yet."""
        found = [c for c in app.get("status", {}).get("conditions", []) if c["type"] == kind]
        return found[0] if found else {}


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
