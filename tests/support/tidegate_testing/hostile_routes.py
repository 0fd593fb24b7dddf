"""Ways to store what means harm, of those that anybody with the right for a kind has. Does I/O where it stores.

All of it goes to one namespace, which must exist, and is sent as the bytes that it is: no encoder of Python makes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from devcluster.kubeapi import RequestFailedError
from tidegate_spark.contract.protocol import CONFIG_VARIABLE
from tidegate_testing.apps import streaming_app
from tidegate_testing.hostile import hostile_documents, nested
from tidegate_testing.kubectl import Kubectl

NUMBER = 60
"""Objects of the generator for each kind; most are refused by the API server."""
API = "tidegate.dev/v1alpha1"
GENERATED = {"generateName": "hostile-", "labels": {}, "annotations": {}}
VICTIM = "app-0"
"""The application that messages and pods name; it is not in their namespace."""
LABELS = {"tidegate.dev/app": VICTIM, "tidegate.dev/role": "driver", "tidegate.dev/epoch": "1"}
NOWHERE = {"hostile.example/node": "none"}
"""Drivers of hostile applications stay Pending: a node's memory is not what they are about."""


def message(payload: Any) -> dict[str, Any]:
    """Return a ControlMessage."""
    spec = {"appRef": {"name": VICTIM}, "type": "reload-config", "payload": payload}
    return {"apiVersion": API, "kind": "ControlMessage", "metadata": GENERATED, "spec": spec}


def application(**spec: Any) -> dict[str, Any]:
    """Return a StreamingApp whose driver no node takes; ``spec`` is merged over it, group by group."""
    groups = {"driver": {"podTemplate": {"spec": {"nodeSelector": NOWHERE}}}, **spec}
    app = streaming_app("x", "", image="shop/x:1", storage={"uri": "s3://bucket/x"}, main="local:///x.py", spec=groups)
    return {**app, "metadata": GENERATED}


def large(name: str) -> bytes:
    """Return a StreamingApp of 1.4 MB."""
    note = {"annotations": {"note": "x" * 1_390_000 + "\N{CYCLONE}"}}
    app = application(driver={"podTemplate": {"metadata": note, "spec": {"nodeSelector": NOWHERE}}})
    return json.dumps({**app, "metadata": {"name": name}}, ensure_ascii=False).encode()


def snapshot() -> dict[str, Any]:
    """Return a StreamSnapshot."""
    spec = {"appRef": {"name": VICTIM}, "export": {"nonce": 1, "states": [{"query": "a"}]}}
    return {"apiVersion": API, "kind": "StreamSnapshot", "metadata": GENERATED, "spec": spec}


def pod(config: str) -> dict[str, Any]:
    """Return a pod that claims to be the driver of an application."""
    container = {"name": "driver", "image": "x", "env": [{"name": CONFIG_VARIABLE, "value": config}]}
    metadata = {"generateName": "hostile-", "labels": LABELS, "annotations": {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def with_raw(value: dict[str, Any], raw: str) -> bytes:
    """Return an object with JSON in the place of ``@`` that no encoder of Python makes."""
    return json.dumps(value).replace('"@"', raw).encode()


DIGITS = "9" * 5_000
ROUTES: list[tuple[str, bytes]] = [
    ("controlmessage", with_raw(message("@"), nested(2_000))),
    ("controlmessage", with_raw(message("@"), nested(90))),
    ("controlmessage", with_raw(message("@"), DIGITS)),
    *[("controlmessage", json.dumps(message("x" * 1_400_000)).encode())] * 6,
    ("streamingapp", json.dumps(application(sparkConf={"spark.task.cpus": DIGITS})).encode()),
    ("streamingapp", json.dumps(application(sparkConf={"spark.executor.memoryOverhead": DIGITS})).encode()),
    ("streamingapp", json.dumps(application(sparkConf={"spark.driver.memory": f"{DIGITS}g"})).encode()),
    ("streamingapp", with_raw(application(driver={"podTemplate": {"spec": {"nodeSelector": "@"}}}), nested(2_000))),
    ("pod", json.dumps(pod(nested(100_000))).encode()),
    ("pod", json.dumps(pod('{"executor":{"cores":' + DIGITS + "}}")).encode()),
    ("pod", json.dumps(pod("null")).encode()),
]
"""Ways in that were found by reading: each is one object of those that anybody with the right for its kind creates."""
LARGE = [f"large-{number:02}" for number in range(40)]
"""Applications that are as long as Kubernetes stores them, with a letter that makes each four times as long in memory:
220 MB together. The namespace's room has the first ones."""
_TEMPLATE = {"spec": {"tolerations": [{"key": "a"}], "nodeSelector": NOWHERE}}
SEEN: dict[str, dict[str, Any]] = {
    "controlmessage": message({"threshold": [1, {"a": "b"}]}),
    "streamsnapshot": snapshot(),
    "streamingapp": application(sparkConf={"spark.task.cpus": "1"}, driver={"podTemplate": _TEMPLATE}),
    "pod": pod(json.dumps({"executor": {"cores": 1}, "spark_conf": {"spark.task.cpus": "1"}})),
}
"""Of what the generator makes its objects, for each kind."""


def corpus(number: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Yield the generator's objects, so many of each kind, with their kinds."""
    for kind, good in SEEN.items():
        for text in hostile_documents(good, number, seed):
            yield kind, text


def store_routes(kubectl: Kubectl, namespace: str) -> int:
    """Create an object for each of the known ways in; return how many there are.

    Raises:
        AssertionError: the API server took less than half of them.
    """
    stored = [_store(kubectl, kind, namespace, text) for kind, text in ROUTES]
    assert sum(stored) >= len(ROUTES) // 2, stored
    for name in LARGE:
        assert _store(kubectl, "streamingapp", namespace, large(name)), name
    return sum(stored) + len(LARGE)


def store_corpus(kubectl: Kubectl, namespace: str, seed: int = 3) -> int:
    """Create the generator's objects; return how many the API server took.

    Raises:
        AssertionError: it took none of a kind.
    """
    taken = dict.fromkeys(SEEN, 0)
    for kind, text in corpus(NUMBER, seed):
        taken[kind] += _store(kubectl, kind, namespace, text)
    assert all(taken.values()), taken
    return sum(taken.values())


def store_payloads(kubectl: Kubectl, namespace: str, number: int, seed: int = 3) -> int:
    """Create so many messages of which the payload alone is the generator's; return how many the API server took.

    It takes three of four: no schema refuses a payload for what it is.
    """
    payloads = hostile_documents({"threshold": [1, {"a": "b"}]}, number, seed)
    texts = (json.dumps(message("@")).encode().replace(b'"@"', payload) for payload in payloads)
    return sum(_store(kubectl, "controlmessage", namespace, text) for text in texts)


def _store(kubectl: Kubectl, kind: str, namespace: str, text: bytes) -> bool:
    """Create an object; say whether the API server took it."""
    try:
        kubectl.api.create_text(kind, namespace, text)
    except RequestFailedError:
        return False
    return True
