"""Plays the kubelet of one API server: runs the containers of pods as processes of this machine. Runs processes.

Each pod has an address of its own in 127.0.0.0/8, the files of its Secrets, and the runtime of this checkout; Spark
runs in local mode, so there are no executors. A process's last words are its pod's termination message.
"""

import base64
import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from devcluster.apiclient import ApiClient, ApiRefusedError
from devcluster.processes import ProcessIdentity, descendants
from tidegate_spark.contract import protocol
from tidegate_testing.driver_process import SOURCES

NODE = "here"
POLL_SECONDS = 0.3
_addresses = itertools.count(1)
_DIRECTORIES = {
    protocol.CREDENTIALS_DIRECTORY: "TIDEGATE_CREDENTIALS_DIRECTORY",
    protocol.ORIGIN_CREDENTIALS_DIRECTORY: "TIDEGATE_ORIGIN_CREDENTIALS_DIRECTORY",
}
Pod = dict[str, Any]


@dataclass
class Container:
    """The one container of a pod that runs."""

    folder: Path
    address: str
    process: subprocess.Popen[bytes]
    restarts: int = 0
    reported: str = ""
    """The status that was written last, as JSON."""
    asked: bool = False
    """It was sent SIGTERM."""
    last: dict[str, Any] = field(default_factory=dict)
    """The end before, if it was started again."""


class ProcessKubelet:
    """A context manager; pods run while it lasts."""

    def __init__(
        self, kubeconfig: Path, folder: Path, jars: Path, variables: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Prepare.

        Args:
            kubeconfig: of the API server.
            folder: for the files of pods.
            jars: what the init container would copy for Spark.
            variables: of every container's environment, before all others.
        """
        self._api, self._folder, self._jars = ApiClient(kubeconfig), folder, jars
        self._given = variables
        self._containers: dict[str, Container] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kubelet", daemon=True)

    def __enter__(self) -> Self:
        self._api.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(timeout=30)
        for container in self._containers.values():
            end_processes(container)

    def output(self, pod_name: str) -> str:
        """Return what the pods of that name have written."""
        return "\n".join(path.read_text(errors="replace") for path in sorted(self._folder.glob(f"{pod_name}-*/output")))

    def lose(self, pod_name: str) -> None:
        """End the process of the pod of that name at once, and have the pod fail and go, as with a lost node."""
        for container in list(self._containers.values()):
            if container.folder.name.startswith(f"{pod_name}-") and container.process.poll() is None:
                container.asked = True
                end_processes(container)

    # --- the loop -----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._over.wait(POLL_SECONDS):
            # An object that somebody else changed or removed meanwhile is looked at again in a moment.
            with contextlib.suppress(OSError):
                for pod in self._api.get("/api/v1/pods")["items"]:
                    self._look_at(pod)

    def _look_at(self, pod: Pod) -> None:
        uid, path = pod["metadata"]["uid"], path_of(pod)
        container = self._containers.get(uid)
        if not pod["spec"].get("nodeName"):
            self._api.call("POST", f"{path}/binding", binding(pod))
        elif container is None:
            self._containers[uid] = self._start(pod)
        elif pod["metadata"].get("deletionTimestamp") and not container.asked:
            container.asked = True
            container.process.send_signal(signal.SIGTERM)
        elif container.process.poll() is None:
            self._report(pod, container, running(pod, container, is_ready(container)))
        else:
            self._ended(pod, container)

    def _ended(self, pod: Pod, container: Container) -> None:
        end = termination(container)
        again = pod["spec"].get("restartPolicy") == "OnFailure" and container.process.returncode != 0
        if again and not container.asked:
            started = self._start(pod, container)
            started.restarts, started.last = container.restarts + 1, end
            self._containers[pod["metadata"]["uid"]] = started
            return
        phase = "Succeeded" if container.process.returncode == 0 else "Failed"
        self._report(pod, container, {"phase": phase, **statuses(pod, container, end, ready=False)})
        if container.asked:
            self._api.call("DELETE", path_of(pod), {"gracePeriodSeconds": 0})

    def _report(self, pod: Pod, container: Container, status: dict[str, Any]) -> None:
        text = json.dumps(status, sort_keys=True)
        if text != container.reported:
            self._api.merge(f"{path_of(pod)}/status", {"status": status})
            container.reported = text

    # --- a process ----------------------------------------------------------------------------------------------------

    def _start(self, pod: Pod, before: Container | None = None) -> Container:
        number = next(_addresses)
        folder = before.folder if before else self._folder / f"{pod['metadata']['name']}-{number:03d}"
        address = before.address if before else f"127.0.78.{number}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "termination").write_text("")
        spec = pod["spec"]["containers"][0]
        own = {"TIDEGATE_BIND_ADDRESS": address, **self._files(pod, spec, folder)}
        variables = {**self._machine(), **self._variables(pod, spec, address), **own, **self._given}
        with (folder / "output").open("ab") as output:
            command = [sys.executable, *spec["command"][1:], *spec.get("args", [])]
            process = subprocess.Popen(command, env=variables, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
        return Container(folder, address, process)

    def _machine(self) -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "TIDEGATE_"))}

    def _variables(self, pod: Pod, spec: dict[str, Any], address: str) -> dict[str, str]:
        fields = {"status.podIP": address, "metadata.uid": pod["metadata"]["uid"]}
        found = {}
        for variable in spec.get("env", []):
            path = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", "")
            # As the kubelet does with what would otherwise name another variable.
            found[variable["name"]] = fields.get(path, variable.get("value", "").replace("$$(", "$("))
        return found

    def _files(self, pod: Pod, spec: dict[str, Any], folder: Path) -> dict[str, str]:
        variables = {
            "PYTHONPATH": str(SOURCES),
            "TIDEGATE_MASTER": "local[2]",
            "TIDEGATE_TERMINATION_LOG": str(folder / "termination"),
            "TIDEGATE_WORK_DIRECTORY": str(folder / "work"),
            "TIDEGATE_JARS_DIRECTORY": str(self._jars),
            **dict.fromkeys(_DIRECTORIES.values(), str(folder / "none")),
        }
        secrets = {v["name"]: v["secret"]["secretName"] for v in pod["spec"].get("volumes", []) if "secret" in v}
        for mount in spec.get("volumeMounts", []):
            if mount["name"] not in secrets:
                continue
            target = folder / mount["name"]
            self._write_secret(pod["metadata"]["namespace"], secrets[mount["name"]], target)
            if mount["mountPath"] in _DIRECTORIES:
                variables[_DIRECTORIES[mount["mountPath"]]] = str(target)
            elif protocol.AGENT_TOKEN_FILE.startswith(mount["mountPath"]):
                variables["TIDEGATE_AGENT_TOKEN_FILE"] = str(target / Path(protocol.AGENT_TOKEN_FILE).name)
        return variables

    def _write_secret(self, namespace: str, name: str, target: Path) -> None:
        target.mkdir(exist_ok=True)
        try:
            data = self._api.get(f"/api/v1/namespaces/{namespace}/secrets/{name}").get("data", {})
        except ApiRefusedError:
            return  # all that are looked for here are optional
        for key, value in data.items():
            (target / key).write_bytes(base64.b64decode(value))


def end_processes(container: Container) -> None:
    """End a container's process and those that it started, as no kubelet has to: here they would go on."""
    below = []
    for pid in descendants(container.process.pid):
        with contextlib.suppress(ProcessLookupError):
            below.append(ProcessIdentity.of(pid))
    container.process.kill()
    container.process.wait(60)
    for each in below:
        each.kill(60)


def path_of(pod: Pod) -> str:
    """Return a pod's address at the API server."""
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def binding(pod: Pod) -> dict[str, Any]:
    """Return what puts a pod on the node: only then is it deleted with grace."""
    target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
    metadata = {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"]}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}


def running(pod: Pod, container: Container, ready: bool) -> dict[str, Any]:
    """Return the status of a pod whose process runs."""
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    address = {"podIP": container.address, "podIPs": [{"ip": container.address}]}
    return {"phase": "Running", **address, **statuses(pod, container, state, ready=ready)}


def statuses(pod: Pod, container: Container, state: dict[str, Any], *, ready: bool) -> dict[str, Any]:
    """Return condition and container status."""
    spec = pod["spec"]["containers"][0]
    status = {"name": spec["name"], "image": spec["image"], "imageID": "", "ready": ready}
    reported = {**status, "restartCount": container.restarts, "state": state, "lastState": container.last}
    return {"conditions": [{"type": "Ready", "status": str(ready)}], "containerStatuses": [reported]}


def termination(container: Container) -> dict[str, Any]:
    """Return how a process ended, in the kubelet's words."""
    code = container.process.returncode
    code = 128 - code if code < 0 else code
    message = (container.folder / "termination").read_text()
    return {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed", "message": message}}


def is_ready(container: Container) -> bool:
    """Ask as a readiness probe does."""
    try:
        with urllib.request.urlopen(f"http://{container.address}:{protocol.STATUS_PORT}/readyz", timeout=3) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
