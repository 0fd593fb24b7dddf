"""A snapshot of another cluster's bucket: looked at, held, started from, and released. Pure."""

import dataclasses
from typing import Any

import msgspec

from tidegate.api.stream_snapshot import (
    ExportPhase,
    ExportSpec,
    ImportStorage,
    SnapshotApp,
    SnapshotPhase,
    SnapshotStorage,
    SnapshotVersion,
    StreamSnapshot,
    StreamSnapshotSpec,
)
from tidegate.api.streaming_app import DeletionPolicy, LocalReference
from tidegate.app.rules.origin import is_usable
from tidegate.engine.rules.actions import PublishEvent
from tidegate.snapshots.actions import CreateSnapshotPod
from tidegate.snapshots.observation import PodRefusal, SnapshotMemory
from tidegate.snapshots.rules.plan import decide_snapshot
from tidegate_spark.contract.protocol import CONFIG_VARIABLE, DriverConfig, from_json
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import (
    ORDERS_VARIABLE,
    AdoptOrder,
    ReleaseOrder,
    SnapshotOrders,
    SnapshotReport,
    SnapshotState,
)
from tidegate_testing.observations import NOW, driver_of
from tidegate_testing.snapshot_observations import (
    APP,
    ID,
    SNAPSHOT_UID,
    deleted,
    kinds,
    observe,
    pod,
    pod_that_said,
    report,
    said,
    snapshot,
    status_of,
    written,
)

URI = "s3://far/apps/shop/orders/snapshots/weekly-99887766/manifest.json"
HOLDER = f"import-{SNAPSHOT_UID}"


def imported(of: StreamSnapshot | None = None) -> StreamSnapshot:
    storage = ImportStorage(endpoint="http://far:9000", credentials_secret_ref=LocalReference(name="far-keys"))
    return msgspec.structs.replace(of or snapshot(), spec=StreamSnapshotSpec(uri=URI, storage=storage))


def looked_at() -> SnapshotReport:
    known = {"app": "shop/orders", "app_uid": "far-uid", "image": "shop/orders:7", "lineage": 4}
    known |= {"spec_hash": "feedfeedfeedfeed", "spec": "{}"}
    return dataclasses.replace(report(SnapshotState.READY), **known)  # type: ignore[arg-type] # names checked at run time


def begun() -> StreamSnapshot:
    o = observe(imported(snapshot(finalizers=("tidegate.dev/streamsnapshot",))))
    return written(o)


def complete() -> StreamSnapshot:
    return written(observe(begun(), taking=pod_that_said(looked_at())))


def contents(plan: Any) -> tuple[DriverConfig, SnapshotOrders, dict[str, Any]]:
    (create,) = [action for action in plan.actions if isinstance(action, CreateSnapshotPod)]
    (container,) = create.manifest["spec"]["containers"]
    env = {item["name"]: item["value"] for item in container["env"] if "value" in item}
    return (
        from_json(DriverConfig, env[CONFIG_VARIABLE]),
        from_json(SnapshotOrders, env[ORDERS_VARIABLE]),
        create.manifest,
    )


def test_an_address_with_a_detour_that_an_older_crd_took_is_not_followed() -> None:
    uri = URI.replace("/shop/", "/../")
    given = msgspec.structs.replace(imported(), spec=msgspec.structs.replace(imported().spec, uri=uri))
    plan = decide_snapshot(observe(given), NOW)
    assert "CreateSnapshotPod" not in kinds(plan)
    (ready,) = [each for each in status_of(plan).conditions if each.type == "Ready"]
    assert (ready.reason, "spec.uri: must not contain the path segments" in ready.message) == ("InvalidSpec", True)


def test_a_pod_looks_at_it_where_it_is_with_the_credentials_that_are_given() -> None:
    plan = decide_snapshot(observe(imported()), NOW)
    assert kinds(plan) == ["AddFinalizer", "WriteSnapshotStatus", "CreateSnapshotPod"]
    config, orders, manifest = contents(plan)
    assert (config.storage.uri, config.storage.endpoint) == ("s3://far/apps/shop/orders", "http://far:9000")
    assert config.credentials_secret == "far-keys"
    assert manifest["spec"]["serviceAccountName"] == "default"
    assert orders == SnapshotOrders(adopt=(AdoptOrder(ID, "weekly-99887766", HOLDER),))
    assert manifest["metadata"]["name"] == f"{ID}-take"
    status = status_of(plan)
    assert (status.snapshot_id, status.app) == ("weekly-99887766", None)
    assert status.storage == SnapshotStorage(
        uri="s3://far/apps/shop/orders", endpoint="http://far:9000", credentials_secret_name="far-keys"
    )


def test_an_application_of_the_same_name_has_nothing_to_do_with_it() -> None:
    running = observe(imported(), app=APP, driver=driver_of(APP))
    assert "CreateSnapshotPod" in kinds(decide_snapshot(running, NOW))


def test_what_it_is_it_is_told_by_its_manifest() -> None:
    found = complete()
    status = found.status
    assert (status.phase, status.batch, status.image) == (SnapshotPhase.READY, 7, "shop/orders:7")
    assert status.app == SnapshotApp(uid="far-uid", lineage=4, name="shop/orders")
    assert (status.snapshot_id, is_usable(found)) == ("weekly-99887766", True)
    assert status.version == SnapshotVersion(spec_hash="feedfeedfeedfeed", spec="{}")
    done = dataclasses.replace(observe(found), taking=pod_that_said(looked_at()))
    assert kinds(decide_snapshot(done, NOW)) == ["DeleteSnapshotPod"]


def test_one_that_is_not_there_yet_says_where_it_was_looked_for() -> None:
    waits = report(SnapshotState.WAITING, Reason.SNAPSHOT_MISSING, message="There is no snapshot weekly.")
    failing = dataclasses.replace(pod_that_said(waits, exit_code=75), phase="Running")
    plan = decide_snapshot(observe(begun(), taking=failing), NOW)
    assert said(plan) == (SnapshotPhase.PENDING, "Stalled", "SnapshotMissing")
    assert "There is no snapshot weekly." in plan.message


def test_one_that_is_damaged_has_failed() -> None:
    damaged = report(SnapshotState.FAILED, Reason.SNAPSHOT_DAMAGED, message="A file is gone.")
    plan = decide_snapshot(observe(begun(), taking=pod_that_said(damaged)), NOW)
    assert said(plan) == (SnapshotPhase.FAILED, "Stalled", "SnapshotDamaged")


# --- its end ---


def test_it_is_released_where_it_is_and_nothing_is_removed() -> None:
    plan = decide_snapshot(observe(deleted(complete())), NOW)
    config, orders, manifest = contents(plan)
    assert config.storage.uri == "s3://far/apps/shop/orders"
    assert orders == SnapshotOrders(release=(ReleaseOrder("weekly-99887766", HOLDER),))
    assert manifest["metadata"]["name"] == f"{ID}-dispose"
    at_work = observe(deleted(complete()), disposing=pod(disposing=True))
    assert kinds(decide_snapshot(at_work, NOW)) == ["WriteSnapshotStatus"]
    done = dataclasses.replace(at_work, disposing=pod_that_said(report(SnapshotState.RELEASED), disposing=True))
    assert kinds(decide_snapshot(done, NOW))[-1] == "RemoveFinalizer"


def test_it_waits_for_applications_that_are_to_start_from_it() -> None:
    plan = decide_snapshot(observe(deleted(complete()), forks=("variant",)), NOW)
    assert plan.reason == "NeededByFork"


def test_what_was_never_looked_at_just_goes() -> None:
    fresh = imported(snapshot(finalizers=("tidegate.dev/streamsnapshot",)))
    assert kinds(decide_snapshot(observe(deleted(fresh)), NOW)) == ["RemoveFinalizer"]


def test_a_storage_that_is_gone_does_not_keep_it_for_ever() -> None:
    failing = dataclasses.replace(pod_that_said(disposing=True, exit_code=75), phase="Running")
    doomed = observe(deleted(complete()), disposing=failing)
    assert "RemoveFinalizer" not in kinds(decide_snapshot(doomed, NOW))
    given_up = decide_snapshot(doomed, NOW + 300)
    assert kinds(given_up)[-1] == "RemoveFinalizer"
    (events,) = [action for action in given_up.actions if isinstance(action, PublishEvent)]
    assert (events.reason, HOLDER in events.message) == ("OriginStillHeld", True)


def test_a_namespace_that_goes_takes_no_pod() -> None:
    refusal = PodRefusal(f"{ID}-dispose", Reason.NAMESPACE_TERMINATING, "", NOW, 1)
    o = observe(deleted(complete()), memory=SnapshotMemory(refusal=refusal))
    assert kinds(decide_snapshot(o, NOW))[-1] == "RemoveFinalizer"


def test_the_policy_of_one_that_got_by_is_not_obeyed() -> None:
    found = complete()
    found = msgspec.structs.replace(
        found, spec=msgspec.structs.replace(found.spec, deletion_policy=DeletionPolicy.DELETE)
    )
    _, orders, _ = contents(decide_snapshot(observe(deleted(found)), NOW))
    assert orders.dispose == ()


def asking_for_an_export(image: str = "") -> StreamSnapshot:
    found = complete()
    return msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, export=ExportSpec(image=image)))


def test_the_image_that_its_manifest_names_runs_nowhere() -> None:
    plan = decide_snapshot(observe(asking_for_an_export()), NOW)
    assert "CreateSnapshotPod" not in kinds(plan)
    export = status_of(plan).export
    assert export is not None
    assert export.phase is ExportPhase.FAILED
    assert "spec.export.image" in export.message
    assert "shop/orders:7" in export.message  # what it says, for who wants to name it


def test_with_an_image_of_the_importers_choice_it_is_exported_where_it_is() -> None:
    config, orders, manifest = contents(decide_snapshot(observe(asking_for_an_export("streams/spark:4")), NOW))
    assert manifest["spec"]["containers"][0]["image"] == "streams/spark:4"
    assert (config.storage.uri, orders.export[0].snapshot) == ("s3://far/apps/shop/orders", "weekly-99887766")
