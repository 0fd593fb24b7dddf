"""What tests ask in their own process has the effect, the answer and the failures of a kubectl process."""

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster.apiserver import ApiServer
from devcluster.kubeapi import UnknownKindError
from tidegate_testing.crd import MINIMAL, wait_until_served
from tidegate_testing.cuttable_line import CuttableLine
from tidegate_testing.kubectl import Kubectl, KubectlError, write_kubeconfig

GROUP = "widgets.example"


def settings(namespace: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s", "namespace": namespace}, "data": data}


def widgets(version: str) -> dict[str, Any]:
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wi"]}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [{"name": version, "served": True, "storage": True, "schema": schema}]
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": versions}
    metadata = {"name": f"widgets.{GROUP}"}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata} | {
        "spec": spec
    }


def pointing_to(server: ApiServer, port: int, written: Path) -> Path:
    """Write the server's kubeconfig again, leading to another port of this machine."""
    content = json.loads(server.kubeconfig.read_text())
    content["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    written.write_text(json.dumps(content))
    return written


@pytest.fixture
def line(api_server: ApiServer) -> Iterator[CuttableLine]:
    address = json.loads(api_server.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    with CuttableLine(int(address.rpartition(":")[2]), "127.0.0.7") as opened:
        yield opened


@pytest.fixture
def over_the_line(api_server: ApiServer, line: CuttableLine, tmp_path: Path) -> Kubectl:
    return Kubectl(api_server.kubectl, pointing_to(api_server, line.port, tmp_path / "kubeconfig"))


# --- answers ----------------------------------------------------------------------------------------------------------


def test_an_object_and_a_list_are_what_kubectl_prints(api_kubectl: Kubectl, namespace: str) -> None:
    api_kubectl.apply(settings(namespace, a="1"), {**MINIMAL, "metadata": {"name": "app", "namespace": namespace}})
    printed = json.loads(api_kubectl.run("get", "cm", "s", "-n", namespace, "-o", "json"))
    assert api_kubectl.get("cm", "s", namespace) == printed
    printed = json.loads(api_kubectl.run("get", "sapp,cm", "-n", namespace, "-o", "json"))["items"]
    assert api_kubectl.list("sapp,cm", namespace) == printed
    assert [each["kind"] for each in printed] == ["StreamingApp", "ConfigMap"]
    labels = {"metadata": {"labels": {"team": "shop"}}}
    api_kubectl.patch("configmap", "s", namespace, labels)
    assert [each["kind"] for each in api_kubectl.list("sapp,cm", namespace, "team in (shop, bills)")] == ["ConfigMap"]


@pytest.mark.parametrize(
    ("name", "kind", "version"),
    [
        ("pods", "Pod", "v1"),
        ("pod", "Pod", "v1"),
        ("po", "Pod", "v1"),
        ("Pod", "Pod", "v1"),
        ("events", "Event", "v1"),
        ("events.events.k8s.io", "Event", "events.k8s.io/v1"),
        ("hpa", "HorizontalPodAutoscaler", "autoscaling/v2"),
        ("hpa.v1.autoscaling", "HorizontalPodAutoscaler", "autoscaling/v1"),
        ("HorizontalPodAutoscaler.v1.autoscaling", "HorizontalPodAutoscaler", "autoscaling/v1"),
        ("snap", "StreamSnapshot", "tidegate.dev/v1alpha1"),
        ("streamingapps.tidegate.dev", "StreamingApp", "tidegate.dev/v1alpha1"),
    ],
)
def test_a_name_means_what_it_means_to_kubectl(api_kubectl: Kubectl, name: str, kind: str, version: str) -> None:
    found = api_kubectl.api.find(name)
    assert (found.kind, found.api_version) == (kind, version)


def test_what_the_server_does_not_serve_is_an_error_and_no_absence(api_kubectl: Kubectl, namespace: str) -> None:
    with pytest.raises(KubectlError, match='the server doesn\'t have a resource type "gadgets"'):
        api_kubectl.get("gadgets", "x", namespace)


def test_what_is_installed_later_is_found_and_what_is_taken_away_or_replaced_is_noticed(
    api_kubectl: Kubectl, namespace: str
) -> None:
    def install(version: str) -> None:
        api_kubectl.apply(widgets(version))
        wait_until_served(api_kubectl)

    def take_away() -> None:
        api_kubectl.run("delete", "crd", f"widgets.{GROUP}", "--timeout=60s", timeout=70)

    widget = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": namespace}}
    with pytest.raises(UnknownKindError):
        api_kubectl.api.find("wi")
    install("v1")
    api_kubectl.create(widget)
    assert [each["metadata"]["name"] for each in api_kubectl.list("wi", namespace)] == ["w"]
    take_away()
    with pytest.raises(KubectlError, match=r"no longer serves|doesn't have a resource type"):
        api_kubectl.list("wi", namespace)
    install("v2")
    assert api_kubectl.list("wi", namespace) == []
    assert api_kubectl.api.find("wi").version == "v2"
    take_away()


# --- changes ----------------------------------------------------------------------------------------------------------


def test_what_was_applied_here_is_applied_again_as_kubectl_does(api_kubectl: Kubectl, namespace: str) -> None:
    assert api_kubectl.apply(settings(namespace, a="1", b="2")) == "configmap/s created\n"
    again = api_kubectl.run("apply", "-f", "-", stdin=json.dumps(settings(namespace, a="1", b="2")))
    assert again == "configmap/s unchanged\n"
    api_kubectl.patch("cm", "s", namespace, {"data": {"c": "3"}})
    api_kubectl.apply(settings(namespace, a="4"))
    stored = api_kubectl.get("cm", "s", namespace)
    # What was applied and is no more goes, what somebody else wrote stays.
    assert stored is not None
    assert stored["data"] == {"a": "4", "c": "3"}


def test_what_can_be_applied_is_applied_beside_what_is_refused(api_kubectl: Kubectl, namespace: str) -> None:
    wrong = {**MINIMAL, "metadata": {"name": "app", "namespace": namespace}, "spec": {"suspended": True}}
    unheard = {"apiVersion": "example/v1", "kind": "Unheard", "metadata": {"name": "u", "namespace": namespace}}
    with pytest.raises(KubectlError, match=r'unknown field "spec\.suspended"') as refused:
        api_kubectl.apply(wrong, unheard, settings(namespace, a="1"))
    assert 'no matches for kind "Unheard"' in str(refused.value)
    assert [each["kind"] for each in api_kubectl.list("cm,sapp", namespace)] == ["ConfigMap"]


def test_a_dry_run_answers_and_stores_nothing(api_kubectl: Kubectl, namespace: str) -> None:
    assert api_kubectl.create(MINIMAL, namespace, dry_run=True)["spec"]["executor"]["instances"] == 1
    assert api_kubectl.list("sapp", namespace) == []


def test_refusals_say_what_is_wrong(api_kubectl: Kubectl, namespace: str) -> None:
    api_kubectl.create(settings(""), namespace)
    with pytest.raises(KubectlError, match="AlreadyExists"):
        api_kubectl.create(settings(""), namespace)
    with pytest.raises(KubectlError, match="NotFound"):
        api_kubectl.patch("cm", "other", namespace, {"data": {"a": "1"}})
    with pytest.raises(KubectlError, match="NotFound"):
        api_kubectl.create(settings(""), "nowhere")


def test_what_is_deleted_is_gone_and_none_is_fine(api_kubectl: Kubectl, namespace: str) -> None:
    api_kubectl.create(settings(""), namespace)
    for _ in range(2):
        api_kubectl.delete("cm", "s", namespace)
        assert api_kubectl.get("cm", "s", namespace) is None


# --- connections ------------------------------------------------------------------------------------------------------


def test_connections_that_were_dropped_are_replaced_without_a_word(
    over_the_line: Kubectl, line: CuttableLine, namespace: str
) -> None:
    for number in range(3):
        line.break_off()
        over_the_line.apply(settings(namespace, number=str(number)))
        line.break_off()
        assert (over_the_line.get("cm", "s", namespace) or {})["data"] == {"number": str(number)}
        line.break_off()
        over_the_line.patch("cm", "s", namespace, {"data": {"number": "-1"}})


def test_many_threads_ask_at_once_while_their_connections_break(
    over_the_line: Kubectl, line: CuttableLine, namespace: str
) -> None:
    over_the_line.apply(settings(namespace, a="1"))
    found: list[Any] = []

    def ask() -> None:
        for _ in range(20):
            try:
                found.append((over_the_line.get("cm", "s", namespace) or {})["data"])
            except KubectlError as broken:
                found.append(broken)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    line.break_off()
    for thread in threads:
        thread.join(120)
    answers = [each for each in found if not isinstance(each, KubectlError)]
    assert len(found) == 160
    assert answers == [{"a": "1"}] * len(answers)
    assert over_the_line.get("cm", "s", namespace) is not None


def test_no_server_is_an_error_of_kubectl_and_the_next_server_is_asked(api_server: ApiServer, tmp_path: Path) -> None:
    nobody = Kubectl(api_server.kubectl, write_kubeconfig(tmp_path, "http://127.0.0.1:9"))
    for ask in (
        lambda: nobody.get("cm", "s", "default"),
        lambda: nobody.list("pods", "default"),
        lambda: nobody.apply(settings("default")),
        lambda: nobody.create(settings("default")),
        lambda: nobody.delete("cm", "s", "default"),
    ):
        with pytest.raises(KubectlError, match="Unable to connect to the server"):
            ask()
    nobody.kubeconfig.write_bytes(api_server.kubeconfig.read_bytes())
    assert nobody.get("ns", "default", "") is not None


def test_no_kubeconfig_is_an_error_of_kubectl(api_server: ApiServer, tmp_path: Path) -> None:
    with pytest.raises(KubectlError, match="No such file"):
        Kubectl(api_server.kubectl, tmp_path / "none").get("cm", "s", "default")


def test_a_kubeconfig_of_another_form_is_read_too(api_server: ApiServer, tmp_path: Path) -> None:
    content = json.loads(api_server.kubeconfig.read_text())
    (tmp_path / "token").write_text(content["users"][0]["user"].pop("token"))
    content["users"][0]["user"]["tokenFile"] = os.fspath(tmp_path / "token")
    content["contexts"][0]["context"]["namespace"] = "kube-system"
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(content))
    somebody = Kubectl(api_server.kubectl, tmp_path / "kubeconfig")
    assert somebody.get("ns", "default", "") is not None
    made = somebody.create({**settings(""), "metadata": {"name": "of-somebody"}})
    assert made["metadata"]["namespace"] == "kube-system"
