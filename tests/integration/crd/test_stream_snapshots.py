"""What the API server takes, refuses and shows of StreamSnapshots, and of forks. Runs kubectl."""

import copy
import json
from typing import Any

import pytest

from tidegate.api.stream_snapshot import decode_snapshot, import_place
from tidegate.api.streaming_app import DeletionPolicy
from tidegate_testing.crd import MINIMAL, REMOVED, changed, create
from tidegate_testing.kubectl import Kubectl, KubectlError

SNAPSHOT: dict[str, Any] = {
    "apiVersion": "tidegate.dev/v1alpha1",
    "kind": "StreamSnapshot",
    "metadata": {"name": "nightly"},
    "spec": {"appRef": {"name": "orders"}},
}
STATUS = {
    "phase": "Ready",
    "observedGeneration": 1,
    "snapshotId": "nightly-aabbccdd",
    "app": {"uid": "u-1", "lineage": 1},
    "queries": [{"name": "main", "batchId": 7, "offsets": "{}"}],
    "batch": 7,
    "size": "1.2Gi",
    "newSize": "140Mi",
    "parent": "earlier-11112222",
    "version": {"specHash": "0123456789abcdef", "spec": "{}"},
    "sparkVersion": "4.2.1",
    "image": "shop/orders:1",
    "conditions": [
        {"type": "Ready", "status": "True", "reason": "Completed", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    ],
}


MANIFEST = "s3://far/apps/shop/orders/snapshots/weekly-99887766/manifest.json"


def snapshot(path: str, value: Any) -> dict[str, Any]:
    found = copy.deepcopy(SNAPSHOT)
    *parents, leaf = path.split("/")
    node = found
    for parent in parents:
        node = node[parent]
    if value is REMOVED:
        del node[leaf]
    else:
        node[leaf] = value
    return found


def write_status(kubectl: Kubectl, namespace: str, name: str = "nightly") -> None:
    kubectl.patch_status("snap", name, namespace, STATUS)


def test_the_smallest_snapshot_is_stored_with_its_default(api_kubectl: Kubectl, namespace: str) -> None:
    stored = create(api_kubectl, namespace, SNAPSHOT)
    assert stored["spec"] == {"appRef": {"name": "orders"}, "deletionPolicy": "Retain", "verifyNonce": 0}
    assert decode_snapshot(json.dumps(stored).encode()).spec.deletion_policy is DeletionPolicy.RETAIN


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("metadata/name", "a" * 55, "at most 54 characters"),
        ("metadata/name", "a.b", "no dots"),
        ("spec/appRef", REMOVED, "spec needs one of appRef"),
        ("spec/appRef", {"name": ""}, "spec.appRef.name"),
        ("spec/appRef", {"name": "a" * 41}, "spec.appRef.name"),
        ("spec/deletionPolicy", "Recycle", "spec.deletionPolicy"),
        ("spec/uri", "s3://elsewhere", "uri must be that of a manifest"),
        ("spec/uri", MANIFEST, "spec needs one of appRef"),
        *(("spec/uri", MANIFEST.replace("/shop/", f"/{step}/"), "uri must not contain") for step in (".", "..")),
        ("spec/storage", {"region": "eu-1"}, "storage needs uri"),
        ("spec", {"uri": MANIFEST, "deletionPolicy": "Delete"}, "deletionPolicy must be Retain"),
        ("spec", {"uri": MANIFEST, "storage": {"endpoint": "far"}}, "storage.endpoint must be http://host"),
    ],
)
def test_what_can_not_be_a_snapshot_is_refused(
    api_kubectl: Kubectl, namespace: str, path: str, value: Any, message: str
) -> None:
    with pytest.raises(KubectlError) as refused:
        create(api_kubectl, namespace, snapshot(path, value))
    assert message in str(refused.value)


def test_an_import_is_stored_and_stays_what_it_is(api_kubectl: Kubectl, namespace: str) -> None:
    given = {"uri": MANIFEST, "storage": {"endpoint": "http://far:9000", "credentialsSecretRef": {"name": "keys"}}}
    stored = create(api_kubectl, namespace, snapshot("spec", given))
    assert stored["spec"]["storage"] == {**given["storage"], "region": "us-east-1", "pathStyleAccess": False}  # type: ignore[dict-item]
    found = decode_snapshot(json.dumps(stored).encode())
    assert import_place(found.spec.uri) == ("s3://far/apps/shop/orders", "weekly-99887766")
    for change, message in (
        ({"uri": MANIFEST.replace("weekly", "daily")}, "uri cannot be changed"),
        ({"uri": None, "appRef": {"name": "orders"}, "storage": None}, "cannot change from appRef to uri"),
    ):
        with pytest.raises(KubectlError, match=message):
            api_kubectl.patch("streamsnapshot", "nightly", namespace, {"spec": change})


def test_the_longest_name_is_taken(api_kubectl: Kubectl, namespace: str) -> None:
    create(api_kubectl, namespace, snapshot("metadata/name", "a" * 54))


def test_a_snapshot_stays_that_of_its_application(api_kubectl: Kubectl, namespace: str) -> None:
    create(api_kubectl, namespace, SNAPSHOT)
    with pytest.raises(KubectlError, match="appRef cannot be changed"):
        api_kubectl.patch("streamsnapshot", "nightly", namespace, {"spec": {"appRef": {"name": "bills"}}})
    api_kubectl.patch("streamsnapshot", "nightly", namespace, {"spec": {"deletionPolicy": "Delete"}})


def test_kubectl_shows_the_line_of_snapshots(api_kubectl: Kubectl, namespace: str) -> None:
    create(api_kubectl, namespace, SNAPSHOT)
    write_status(api_kubectl, namespace)
    table = [line.split() for line in api_kubectl.run("get", "snap", "-n", namespace).splitlines()]
    assert table[0] == ["NAME", "APP", "PHASE", "LINEAGE", "BATCH", "PARENT", "SIZE", "AGE"]
    assert table[1][:7] == ["nightly", "orders", "Ready", "1", "7", "earlier-11112222", "1.2Gi"]
    wide = [line.split() for line in api_kubectl.run("get", "snap", "-n", namespace, "-o", "wide").splitlines()]
    assert wide[0][8:13] == ["ID", "NEW", "VERSION", "SPARK", "IMAGE"]
    assert wide[1][8:13] == ["nightly-aabbccdd", "140Mi", "0123456789abcdef", "4.2.1", "shop/orders:1"]
    api_kubectl.run("wait", "--for=condition=Ready", "snap/nightly", "-n", namespace, "--timeout=60s", timeout=70)


def test_the_whole_status_is_stored_and_nobody_writes_it_with_the_spec(api_kubectl: Kubectl, namespace: str) -> None:
    create(api_kubectl, namespace, SNAPSHOT)
    api_kubectl.patch("streamsnapshot", "nightly", namespace, {"status": STATUS})
    assert (api_kubectl.get("snap", "nightly", namespace) or {})["status"] == {"observedGeneration": -1}
    write_status(api_kubectl, namespace)
    assert (api_kubectl.get("snap", "nightly", namespace) or {})["status"] == STATUS


# --- applications that start with one ---

START = {"snapshotRef": {"name": "nightly"}}
OFFSETS = {**START, "startingOffsets": '{"orders": {"0": 120, "1": 0}, "bills": {"0": 7}}'}
EXPORT = "s3://streams/apps/shop/word-count/exports/nightly-aabbccdd-1/manifest.json"


def test_an_application_may_start_from_a_snapshot(api_kubectl: Kubectl, namespace: str) -> None:
    stored = create(api_kubectl, namespace, changed("spec/startFrom", START))
    assert stored["spec"]["startFrom"] == {**START, "outputs": "Own"}
    api_kubectl.patch("sapp", "app", namespace, {"spec": {"suspend": True}})
    # Said later, too: the variant that won takes the place of the one that lost.
    api_kubectl.patch("sapp", "app", namespace, {"spec": {"startFrom": {"outputs": "TakeOver"}}})


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (None, START, "snapshotRef and startFrom.exportedState can only be set when the application is created"),
        (START, None, "snapshotRef and startFrom.exportedState can only be set when the application is created"),
        (START, {"snapshotRef": {"name": "another"}}, "startFrom.exportedState cannot be changed"),
        (START, OFFSETS, "startFrom.startingOffsets can only be set when the application is created"),
        (
            OFFSETS,
            {"startingOffsets": None},
            "startFrom.startingOffsets can only be set when the application is created",
        ),
        (OFFSETS, {"startingOffsets": '{"orders":{"0":0}}'}, "startFrom.startingOffsets cannot be changed"),
        (START, {"snapshotRef": None, "exportedState": {"uri": EXPORT}}, "startFrom.exportedState cannot be changed"),
    ],
)
def test_what_an_application_starts_from_is_decided_at_its_creation(
    api_kubectl: Kubectl, namespace: str, before: Any, after: Any, message: str
) -> None:
    create(api_kubectl, namespace, changed("spec/startFrom", before) if before else MINIMAL)
    with pytest.raises(KubectlError, match=message):
        api_kubectl.patch("sapp", "app", namespace, {"spec": {"startFrom": after}})


def test_a_beginning_names_a_snapshot(api_kubectl: Kubectl, namespace: str) -> None:
    with pytest.raises(KubectlError, match=r"startFrom needs one of snapshotRef.* and exportedState"):
        create(api_kubectl, namespace, changed("spec/startFrom", {}))


def test_an_application_may_start_from_a_snapshot_and_other_offsets(api_kubectl: Kubectl, namespace: str) -> None:
    stored = create(api_kubectl, namespace, changed("spec/startFrom", OFFSETS))
    assert stored["spec"]["startFrom"] == {**OFFSETS, "outputs": "Own"}
    api_kubectl.patch("sapp", "app", namespace, {"spec": {"startFrom": {"outputs": "TakeOver"}}})


@pytest.mark.parametrize("offsets", ["latest", "{}", "[]", '{"orders":0}', '{"orders":{}}', '{"orders":{"0":0}'])
def test_offsets_are_numbers_of_partitions(api_kubectl: Kubectl, namespace: str, offsets: str) -> None:
    with pytest.raises(KubectlError, match=r"startFrom\.startingOffsets must be JSON"):
        create(api_kubectl, namespace, changed("spec/startFrom", {**START, "startingOffsets": offsets}))


@pytest.mark.parametrize("number", ["-1", "-2", "-7"])
def test_nor_are_numbers_that_stand_for_the_beginning_or_the_end(
    api_kubectl: Kubectl, namespace: str, number: str
) -> None:
    offsets = f'{{"orders": {{"0": 7, "1":\n {number}}}}}'
    with pytest.raises(KubectlError, match=r"startFrom\.startingOffsets must have an offset of at least 0"):
        create(api_kubectl, namespace, changed("spec/startFrom", {**START, "startingOffsets": offsets}))


# --- exports ---


def test_an_application_may_start_from_an_export(api_kubectl: Kubectl, namespace: str) -> None:
    stored = create(api_kubectl, namespace, changed("spec/startFrom", {"exportedState": {"uri": EXPORT}}))
    assert stored["spec"]["startFrom"] == {"exportedState": {"uri": EXPORT}, "outputs": "Own"}


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ({"exportedState": {"uri": EXPORT}, **START}, "startFrom needs one of"),
        ({"exportedState": {"uri": EXPORT}, "outputs": "TakeOver"}, "startFrom.outputs needs startFrom.snapshotRef"),
        (
            {"exportedState": {"uri": EXPORT}, "startingOffsets": OFFSETS["startingOffsets"]},
            "startFrom.startingOffsets needs startFrom.snapshotRef",
        ),
        (
            {"exportedState": {"uri": "s3://streams/apps/shop/word-count/snapshots/a/manifest.json"}},
            "startFrom.exportedState.uri must be",
        ),
        ({"exportedState": {"uri": "nightly"}}, "startFrom.exportedState.uri must be"),
        (
            {"exportedState": {"uri": EXPORT.replace("/exports/", "/../of-others/exports/")}},
            "startFrom.exportedState.uri must not contain the path segments",
        ),
    ],
)
def test_an_export_is_named_by_its_manifest(
    api_kubectl: Kubectl, namespace: str, start: dict[str, Any], message: str
) -> None:
    with pytest.raises(KubectlError, match=message):
        create(api_kubectl, namespace, changed("spec/startFrom", start))


def test_an_export_is_filled_in_and_changes_with_its_number_alone(api_kubectl: Kubectl, namespace: str) -> None:
    made = {**SNAPSHOT, "spec": {**SNAPSHOT["spec"], "export": {"states": [{"query": "main"}]}}}
    stored = create(api_kubectl, namespace, made)["spec"]["export"]
    whole: dict[str, Any] = {"nonce": 1, "format": "JSONLines", "cores": 1, "timeoutSeconds": 3600}
    whole["resources"] = {}
    assert stored == {**whole, "states": [{"query": "main"}]}
    with pytest.raises(KubectlError, match=r"change export\.nonce as well"):
        api_kubectl.patch("snap", "nightly", namespace, {"spec": {"export": {"format": "CSV"}}})
    api_kubectl.patch("snap", "nightly", namespace, {"spec": {"export": {"format": "CSV", "nonce": 2}}})
    with pytest.raises(KubectlError, match=r"export\.resources\.requests\.memory must be at least 750Mi"):
        api_kubectl.patch(
            "snap",
            "nightly",
            namespace,
            {"spec": {"export": {"resources": {"requests": {"memory": "500Mi"}}, "nonce": 3}}},
        )


# --- schedules ---


def test_a_schedule_is_stored_with_its_defaults(api_kubectl: Kubectl, namespace: str) -> None:
    stored = create(api_kubectl, namespace, changed("spec/snapshots", {"schedule": "0 */6 * * mon-fri"}))
    given = {
        "schedule": "0 */6 * * mon-fri",
        "suspend": False,
        "retention": {"maxCount": 10},
        "verify": False,
        "finalSnapshot": False,
    }
    assert stored["spec"]["snapshots"] == given
    api_kubectl.patch(
        "sapp", "app", namespace, {"spec": {"snapshots": {"retention": {"maxCount": None, "maxAgeSeconds": 2592000}}}}
    )
    assert (api_kubectl.get("sapp", "app", namespace) or {})["spec"]["snapshots"]["retention"] == {
        "maxAgeSeconds": 2592000
    }


@pytest.mark.parametrize(
    ("snapshots", "message"),
    [
        ({"schedule": "0 * * * *", "intervalSeconds": 21600}, "schedule or intervalSeconds, not both"),
        ({"schedule": "@hourly"}, "five fields of cron"),
        ({"schedule": "0 24 * * *"}, "five fields of cron"),
        ({"intervalSeconds": 90}, "must be whole minutes: a multiple of 60"),
        ({"intervalSeconds": 0}, "greater than or equal to 60"),
        ({"intervalSeconds": 60, "timeZone": "Europe/Berlin"}, "timeZone is the time zone of snapshots.schedule"),
        ({"retention": {"maxAgeSeconds": 59}}, "spec.snapshots.retention.maxAgeSeconds"),
        ({"retention": {"maxCount": 0}}, "spec.snapshots.retention.maxCount"),
    ],
)
def test_what_can_not_be_a_schedule_is_refused(
    api_kubectl: Kubectl, namespace: str, snapshots: dict[str, Any], message: str
) -> None:
    with pytest.raises(KubectlError) as refused:
        create(api_kubectl, namespace, changed("spec/snapshots", snapshots))
    assert message in str(refused.value)


def test_a_last_snapshot_does_not_lie_in_storage_that_is_removed(api_kubectl: Kubectl, namespace: str) -> None:
    app = changed("spec/snapshots", {"finalSnapshot": True})
    app["spec"]["storage"]["deletionPolicy"] = "Delete"
    with pytest.raises(KubectlError, match="finalSnapshot needs storage"):
        create(api_kubectl, namespace, app)
