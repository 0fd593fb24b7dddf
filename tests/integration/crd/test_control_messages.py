"""What the API server takes, refuses and shows of ControlMessages. Runs kubectl."""

import copy
import json
from typing import Any

import pytest

from tidegate.api.control_message import decode_message, payload_text
from tidegate.control.builders.channel_message import build_channel_message
from tidegate_spark.contract.control_protocol import AskedMessage, MessageReport, MessageState
from tidegate_testing.crd import REMOVED, create
from tidegate_testing.kubectl import Kubectl, KubectlError
from tidegate_testing.values import app

MESSAGE: dict[str, Any] = {
    "apiVersion": "tidegate.dev/v1alpha1",
    "kind": "ControlMessage",
    "metadata": {"name": "faster"},
    "spec": {"appRef": {"name": "orders"}, "type": "reload-config"},
}
STATUS = {
    "phase": "Applied",
    "observedGeneration": 1,
    "order": "412",
    "appUid": "u-1",
    "origin": {"channel": "Kafka", "source": "/pricing", "id": "7f2c"},
    "offeredTime": "2026-01-01T00:00:00Z",
    "expirationTime": "2026-01-01T00:10:00Z",
    "sequence": 12,
    "publishedTime": "2026-01-01T00:00:01Z",
    "completionTime": "2026-01-01T00:00:05Z",
    "queries": [{"name": "main", "batchId": 310, "applied": 4, "ran": 4, "errors": ["E: x"], "moreErrors": 2}],
    "batch": 310,
    "acks": "4/4",
    "results": {"uri": "s3://streams/apps/shop/orders/exports/1/manifest.json"},
    "conditions": [
        {"type": kind, "status": status, "reason": "Applied", "lastTransitionTime": "2026-01-01T00:00:05Z"}
        for kind, status in (("Ready", "True"), ("Reconciling", "False"), ("Stalled", "False"), ("Applied", "True"))
    ],
}


def message(path: str, value: Any) -> dict[str, Any]:
    found = copy.deepcopy(MESSAGE)
    *parents, leaf = path.split("/")
    node = found
    for parent in parents:
        node = node[parent]
    if value is REMOVED:
        del node[leaf]
    else:
        node[leaf] = value
    return found


def write_status(kubectl: Kubectl, namespace: str) -> None:
    kubectl.patch_status("ctl", "faster", namespace, STATUS)


def test_the_smallest_message_is_stored_as_it_is(api_kubectl: Kubectl, namespace: str) -> None:
    stored = create(api_kubectl, namespace, MESSAGE)
    assert stored["spec"] == MESSAGE["spec"]
    assert payload_text(decode_message(json.dumps(stored).encode())) == "null"


@pytest.mark.parametrize(
    "payload",
    [{"threshold": 3.5, "deep": {"er": [1, None, True, {"x": "ü"}]}}, [1, "two"], "text", 7, 2.5, True, {}],
)
def test_a_payload_is_any_json_and_stays_what_it_is(api_kubectl: Kubectl, namespace: str, payload: Any) -> None:
    stored = create(api_kubectl, namespace, message("spec/payload", payload))
    assert stored["spec"]["payload"] == payload
    assert json.loads(payload_text(decode_message(json.dumps(stored).encode()))) == payload


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("metadata/name", "a" * 201, "at most 200 characters"),
        ("spec/appRef", REMOVED, "spec.appRef"),
        ("spec/appRef", {"name": ""}, "spec.appRef.name"),
        ("spec/appRef", {"name": "a" * 41}, "spec.appRef.name"),
        ("spec/type", REMOVED, "spec.type"),
        ("spec/type", "", "spec.type"),
        ("spec/type", "two words", "type must start with a letter"),
        ("spec/type", "7up", "type must start with a letter"),
        ("spec/type", "a" * 129, "spec.type"),
        ("spec/expirationSeconds", "10m", "must be of type integer"),
        ("spec/expirationSeconds", 0, "greater than or equal to 1"),
        ("spec/expirationSeconds", 8640001, "less than or equal to 8640000"),
        ("spec/unheard", 1, "unknown field"),
    ],
)
def test_what_can_not_be_a_message_is_refused(
    api_kubectl: Kubectl, namespace: str, path: str, value: Any, text: str
) -> None:
    with pytest.raises(KubectlError) as refused:
        create(api_kubectl, namespace, message(path, value))
    assert text in str(refused.value)


@pytest.mark.parametrize("kind", ["ping", "com.example.Threshold_2", "x"])
def test_types_of_applications_own_are_taken(api_kubectl: Kubectl, namespace: str, kind: str) -> None:
    create(api_kubectl, namespace, message("spec/type", kind))


def test_a_message_that_expires_is_read_as_one(api_kubectl: Kubectl, namespace: str) -> None:
    read = decode_message(json.dumps(create(api_kubectl, namespace, message("spec/expirationSeconds", 600))).encode())
    assert read.expires == read.created + 600


@pytest.mark.parametrize(
    "change",
    [
        {"appRef": {"name": "bills"}},
        {"type": "pause"},
        {"expirationSeconds": 60},
        {"payload": {"threshold": 4}},
        {"payload": {"limit": 3}},
        {"payload": {"threshold": 3, "deep": {"er": [2]}}},
        {"payload": None},
        {"payload": "text"},
    ],
    ids=str,
)
def test_a_message_does_not_change_not_even_deep_inside_of_its_payload(
    api_kubectl: Kubectl, namespace: str, change: dict[str, Any]
) -> None:
    payload = {"threshold": 3, "deep": {"er": [1]}}
    create(api_kubectl, namespace, message("spec/payload", payload))
    with pytest.raises(KubectlError, match="a message cannot be changed"):
        api_kubectl.patch("controlmessage", "faster", namespace, {"spec": change})
    api_kubectl.patch("controlmessage", "faster", namespace, {"metadata": {"labels": {"team": "shop"}}})


def test_kubectl_shows_the_line_of_messages(api_kubectl: Kubectl, namespace: str) -> None:
    create(api_kubectl, namespace, MESSAGE)
    fresh = [line.split() for line in api_kubectl.run("get", "ctl", "-n", namespace).splitlines()]
    assert fresh[0] == ["NAME", "TYPE", "APP", "PHASE", "SEQ", "BATCH", "ACKS", "ORIGIN", "AGE"]
    assert fresh[1][:3] == ["faster", "reload-config", "orders"]
    write_status(api_kubectl, namespace)
    wide = [line.split() for line in api_kubectl.run("get", "ctl", "-n", namespace, "-o", "wide").splitlines()]
    assert wide[1][:8] == ["faster", "reload-config", "orders", "Applied", "12", "310", "4/4", "Kafka"]
    assert wide[0][9:] == ["EXPIRES", "RESULT", "SOURCE", "REASON"]
    uri = STATUS["results"]["uri"]  # type: ignore[index] # a mapping
    assert wide[1][9:] == [STATUS["expirationTime"], uri, "/pricing", "Applied"]
    for condition in ("Ready", "Applied"):
        api_kubectl.run("wait", f"--for=condition={condition}", "ctl/faster", "-n", namespace, "--timeout=10s")


def test_what_the_operator_makes_of_a_brokers_message_is_stored_and_found_by_its_label(
    api_kubectl: Kubectl, namespace: str
) -> None:
    reported = MessageReport("0123456789abcdef" * 2, MessageState.LOGGED, 12)
    asked = AskedMessage(reported, "dump-state", '{"format":"CSV"}', "kafka:control:x/0", "/pricing/ä \u2028", "7f2c")
    built = build_channel_message(asked, app({}))
    stored = create(api_kubectl, namespace, {**built, "metadata": {**built["metadata"], "namespace": namespace}})
    assert decode_message(json.dumps(stored).encode()).is_from_channel
    (found,) = api_kubectl.list("ctl", namespace, "tidegate.dev/channel=Kafka")
    assert found["metadata"]["name"] == built["metadata"]["name"]


def test_the_whole_status_is_stored_and_nobody_writes_it_with_the_spec(api_kubectl: Kubectl, namespace: str) -> None:
    create(api_kubectl, namespace, MESSAGE)
    api_kubectl.patch("controlmessage", "faster", namespace, {"status": STATUS})
    assert (api_kubectl.get("ctl", "faster", namespace) or {})["status"] == {"observedGeneration": -1}
    write_status(api_kubectl, namespace)
    assert (api_kubectl.get("ctl", "faster", namespace) or {})["status"] == STATUS


def test_the_largest_payload_is_stored(api_kubectl: Kubectl, namespace: str) -> None:
    create(api_kubectl, namespace, message("spec/payload", "x" * (64 * 1024 - 2)))


def test_messages_are_ordered_by_their_first_versions(api_kubectl: Kubectl, namespace: str) -> None:
    first, second = (create(api_kubectl, namespace, message("metadata/name", name)) for name in ("z", "a"))
    versions = [int(stored["metadata"]["resourceVersion"]) for stored in (first, second)]
    assert versions == sorted(versions)


@pytest.mark.parametrize(("retention", "taken"), [(86400, True), (60, True), (59, False), ("24h", False)])
def test_an_application_says_how_long_messages_stay(
    api_kubectl: Kubectl, namespace: str, retention: int | str, taken: bool
) -> None:
    manifest = {
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "StreamingApp",
        "metadata": {"name": "app"},
        "spec": {
            "application": {"image": "example/app:1", "main": "local:///opt/app/main.py"},
            "storage": {"uri": "s3://streams/apps"},
            "control": {"retentionSeconds": retention},
        },
    }
    if taken:
        assert create(api_kubectl, namespace, manifest)["spec"]["control"]["retentionSeconds"] == retention
        return
    with pytest.raises(KubectlError, match=r"spec\.control\.retentionSeconds"):
        create(api_kubectl, namespace, manifest)
