"""Of which version a snapshot is said to be, and what of that version is shown. Pure."""

import dataclasses
import json
from typing import Any

import msgspec
import pytest

from tidegate.api.spec_hash import spec_hash, version_of
from tidegate.api.stream_snapshot import SnapshotVersion
from tidegate.api.streaming_app import StableSpec, StreamingApp
from tidegate.snapshots.actions import GiveOrders
from tidegate.snapshots.observation import SnapshotObservation
from tidegate.snapshots.rules.plan import decide_snapshot
from tidegate.snapshots.rules.version import image_taken, version_taken
from tidegate_spark.contract.snapshot_protocol import LONGEST_SPEC, SnapshotState
from tidegate_testing.observations import NOW, app_with, launched, running_driver
from tidegate_testing.snapshot_observations import (
    APP,
    begun,
    observe,
    observe_running,
    report,
    settled,
    snapshot,
    status_of,
)


def program(**fields: Any) -> dict[str, Any]:
    return {"application": {"image": "shop/orders:1", "main": "local:///opt/app/main.py", **fields}}


EDITED = launched(app_with(program(args=["--fast"])), applied_spec_hash=spec_hash(APP))


def taken(o: SnapshotObservation) -> SnapshotVersion:
    version = version_taken(o)
    assert version is not None
    return version


def shown(change: dict[str, Any]) -> dict[str, Any]:
    app = launched(app_with(change))
    found: dict[str, Any] = json.loads(taken(observe(snapshot(), app=app)).spec)
    return found


def with_stable(app: StreamingApp, of: StreamingApp) -> StreamingApp:
    stable = StableSpec(spec_hash=spec_hash(of), spec=version_of(of.spec))
    return msgspec.structs.replace(app, status=msgspec.structs.replace(app.status, last_stable=stable))


def test_an_edit_that_has_not_been_launched_is_not_the_version_whose_state_it_is() -> None:
    driver = running_driver(APP)
    assert taken(observe_running(snapshot(), app=EDITED, driver=driver)) == SnapshotVersion(spec_hash=spec_hash(APP))
    # Without a driver it is the last that ran.
    assert taken(observe(snapshot(), app=EDITED)).spec_hash == spec_hash(APP)
    known = observe_running(snapshot(), app=with_stable(EDITED, APP), driver=driver)
    assert taken(known) == SnapshotVersion(spec_hash=spec_hash(APP), spec=version_of(APP.spec))


def test_the_image_is_that_of_the_version_whose_state_it_is() -> None:
    of_another = launched(app_with(program(image="shop/orders:2")), applied_spec_hash=spec_hash(APP))
    held = observe_running(snapshot(), app=with_stable(of_another, APP), driver=running_driver(APP))
    assert image_taken(held) == APP.spec.application.image != of_another.spec.application.image
    forgotten = observe_running(snapshot(), app=of_another, driver=running_driver(APP))
    assert image_taken(forgotten) == "shop/orders:2"


def test_one_that_is_taken_after_an_upgrade_has_the_version_and_the_image_that_took_it() -> None:
    upgraded = launched(app_with(program(image="shop/orders:2")))
    o = observe_running(snapshot(begun(APP)), app=upgraded)
    plan = decide_snapshot(o, NOW)
    ((order,),) = [action.orders.take for action in plan.actions if isinstance(action, GiveOrders)]
    status = status_of(plan)
    assert status.version is not None
    assert status.version.spec_hash == order.spec_hash == spec_hash(upgraded)
    assert status.image == order.image == "shop/orders:2"


def test_one_that_was_complete_before_the_upgrade_has_the_image_of_its_version_whatever_is_reported() -> None:
    upgraded = with_stable(launched(app_with(program(image="shop/orders:2"))), APP)
    complete = report(SnapshotState.READY, image="evil:1", spec_hash=spec_hash(APP))
    of_new = msgspec.structs.replace(begun(upgraded), image="shop/orders:2")
    status = status_of(decide_snapshot(observe_running(snapshot(of_new), complete, app=upgraded), NOW))
    assert status.version is not None
    assert (status.version.spec_hash, status.image) == (spec_hash(APP), "shop/orders:1")


def test_a_version_that_is_too_long_is_known_by_its_hash() -> None:
    app = launched(app_with(program(args=["x" * LONGEST_SPEC])))
    assert taken(observe(snapshot(), app=app)) == SnapshotVersion(spec_hash=spec_hash(app))


def test_values_of_variables_whose_name_tells_of_a_secret_are_left_out() -> None:
    env = [
        {"name": "API_TOKEN", "value": "hunter2hunter2"},
        {"name": "LEVEL", "value": "info"},
        {"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}},
    ]
    sidecar = {"name": "side", "env": [{"name": "SIDE_SECRET", "value": "hunter2"}]}
    template = {"spec": {"containers": [sidecar], "volumes": [{"name": "s", "secret": {"secretName": "tls"}}]}}
    version = shown({**program(env=env), "driver": {"podTemplate": template}})
    assert version["application.env"] == [{"name": "API_TOKEN", "value": "[redacted]"}, *env[1:]]
    inner = version["driver.podTemplate"]["spec"]
    assert inner["containers"][0]["env"] == [{"name": "SIDE_SECRET", "value": "[redacted]"}]
    assert inner["volumes"] == template["spec"]["volumes"]


def test_so_are_those_of_settings_and_arguments() -> None:
    settings = {"spark.hadoop.fs.s3a.bucket.far.secret.key": "hunter2", "spark.sql.session.timeZone": "UTC"}
    assert shown({"sparkConf": settings})["sparkConf"] == {
        "spark.hadoop.fs.s3a.bucket.far.secret.key": "[redacted]",
        "spark.sql.session.timeZone": "UTC",
    }
    args = ["--password", "hunter2", "--api-token=hunter2", "--secret", "-hunter2", "--use-token", "--out", "topic"]
    assert shown(program(args=args))["application.args"] == [
        *(
            "--password",
            "[redacted]",
            "--api-token=[redacted]",
            "--secret",
            "[redacted]",
            "--use-token",
            "--out",
            "topic",
        ),
    ]


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        ({"spec_hash": spec_hash(APP)}, SnapshotVersion(spec_hash=spec_hash(APP), spec=version_of(APP.spec))),
        ({"spec_hash": "feedfeedfeedfeed"}, SnapshotVersion(spec_hash="feedfeedfeedfeed")),
        ({}, SnapshotVersion(spec_hash=spec_hash(APP), spec=version_of(APP.spec))),
    ],
    ids=["as ordered", "of another attempt", "an older runtime"],
)
def test_once_it_is_complete_the_manifest_has_the_say(reported: dict[str, str], expected: SnapshotVersion) -> None:
    ordered = settled(observe_running(snapshot()))
    assert ordered.snapshot.status.version == SnapshotVersion(spec_hash=spec_hash(APP), spec=version_of(APP.spec))
    o = observe_running(snapshot(begun()), dataclasses.replace(report(SnapshotState.READY), **reported))  # type: ignore[arg-type] # strings
    assert status_of(decide_snapshot(o, NOW)).version == expected
