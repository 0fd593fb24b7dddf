"""Control messages as the demo sends them and tells of them."""

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from devcluster.demo.application import FLIGHTS, build_application
from devcluster.demo.kubernetes import Kubernetes
from devcluster.demo.messages import LABEL, Messages, build_message, described

APPLICATION = build_application(image="i", endpoint="http://e", options={}, file=FLIGHTS)


def test_a_message_names_its_application_and_has_a_payload_if_there_is_one() -> None:
    message = build_message(APPLICATION, "look", "dump-state", {"format": "JSONLines"})
    assert message["metadata"] == {"name": "look", "namespace": "demo", "labels": {LABEL: "flight-delays"}}
    spec = {"appRef": {"name": "flight-delays"}, "type": "dump-state"}
    assert message["spec"] == {**spec, "payload": {"format": "JSONLines"}}
    assert build_message(APPLICATION, "hello", "ping", None)["spec"] == {**spec, "type": "ping"}


def test_one_that_nobody_has_seen_is_told_of_as_that() -> None:
    assert described({}) == "not seen yet"


def test_one_that_is_in_force_is_told_of_with_its_batch() -> None:
    ready = {"type": "Ready", "status": "True", "message": "In force."}
    assert described({"phase": "Applied", "batch": 37, "acks": "2/2", "conditions": [ready]}) == (
        "Applied, batch 37, 2/2 workers"
    )


def test_one_that_failed_is_told_of_with_the_first_error() -> None:
    queries = [{"name": "a", "errors": []}, {"name": "b", "errors": ["model 'delays': ValueError: no"]}]
    status = {"phase": "Failed", "batch": 9, "acks": "0/2", "queries": queries}
    assert described(status) == "Failed, batch 9, 0/2 workers: model 'delays': ValueError: no"
    refused = {"type": "Ready", "status": "False", "message": "No such type."}
    assert described({"phase": "Failed", "conditions": [refused]}) == "Failed: No such type."


class Cluster(Kubernetes):
    """One whose messages go through these phases, a look each."""

    phases: ClassVar = ["Pending", "Published", "Applied"]

    def get(self, kind: str, name: str, namespace: str) -> dict[str, Any] | None:
        assert (kind, namespace) == ("ctl", "demo")
        return {"status": {"phase": self.phases.pop(0) if len(self.phases) > 1 else self.phases[0]}}

    def ctl(self, *arguments: str, stdin: str | None = None, timeout: float = 60.0) -> str:
        assert arguments[0] == "apply"
        assert json.loads(stdin or "")["items"][0]["kind"] == "ControlMessage"
        return ""


def test_the_end_of_a_message_is_waited_for_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devcluster.demo.messages.SECONDS_BETWEEN_POLLS", 0.0)
    cluster = Cluster(Path("kubectl"), Path("helm"), Path("kubeconfig"))
    messages = Messages(cluster, APPLICATION)
    messages.send("look", "dump-state")
    assert messages.await_end("look", 30)["phase"] == "Applied"
    monkeypatch.setattr(Cluster, "phases", ["Published"])
    with pytest.raises(TimeoutError, match="message look is not at its end after 0 s: Published"):
        messages.await_end("look", 0)


def test_a_message_that_is_in_the_log_need_not_be_in_force_to_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devcluster.demo.messages.SECONDS_BETWEEN_POLLS", 0.0)
    monkeypatch.setattr(Cluster, "phases", ["Pending", "Published"])
    messages = Messages(Cluster(Path("kubectl"), Path("helm"), Path("kubeconfig")), APPLICATION)
    assert messages.await_log("look", 30)["phase"] == "Published"
    monkeypatch.setattr(Cluster, "phases", ["Pending"])
    with pytest.raises(TimeoutError, match="message look is not in the log after 0 s: Pending"):
        messages.await_log("look", 0)


def test_only_messages_to_the_demos_own_application_are_forgotten() -> None:
    reported: list[tuple[str, ...]] = []

    class Listening(Kubernetes):
        def ctl(self, *arguments: str, stdin: str | None = None, timeout: float = 60.0) -> str:
            reported.append(arguments)
            return ""

    Messages(Listening(Path("kubectl"), Path("helm"), Path("kubeconfig")), APPLICATION).forget()
    assert reported[0][:6] == ("delete", "ctl", "-n", "demo", "-l", "tidegate.dev/demo=flight-delays")
