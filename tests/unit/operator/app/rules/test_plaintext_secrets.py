"""Secrets in plain text are named, and are in nothing that is written of the application; nothing is held up. Pure."""

import json
from typing import Any

import msgspec
import pytest

from tidegate.api.spec_hash import recorded_version, spec_hash, version_of
from tidegate.api.streaming_app import Phase, StableSpec, StreamingApp, UpgradePhase, UpgradeStatus, encode_status
from tidegate.app.actions import Plan, RecordLaunch, WriteStatus
from tidegate.app.observation import Observation
from tidegate.app.rules.launch.plaintext_secrets import PLAINTEXT_SECRETS
from tidegate.app.rules.plan import decide
from tidegate.engine.rules.actions import PublishEvent
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import NOW, app_with, ended_with, launched, observe, report_of, running_driver
from tidegate_testing.plans import status_of, written
from tidegate_testing.upgrades import BEGUN, IMAGE, PIN, A, B, C, edited, events, launch_of, record, runs, upgrading

SECRET = "hunter2hunter2"
TOKEN = {"application.env": [{"name": "API_TOKEN", "value": SECRET}]}
REFERENCE = {"secretKeyRef": {"name": "api", "key": "token"}}
MOVED = {"application.env": [{"name": "API_TOKEN", "valueFrom": REFERENCE}]}
SIDECAR = {"name": "side", "env": [{"name": "DB_PASSWORD", "value": SECRET}]}
PLACES: dict[str, tuple[dict[str, Any], str, str]] = {
    "setting of the storage": (
        {"sparkConf": {"spark.hadoop.fs.s3a.secret.key": SECRET}},
        "spec.sparkConf[spark.hadoop.fs.s3a.secret.key]",
        "spec.storage.credentialsSecretRef",
    ),
    "setting of Hadoop": (
        {"sparkConf": {"spark.hadoop.fs.s3a.bucket.far.secret.key": SECRET}},
        "spec.sparkConf[spark.hadoop.fs.s3a.bucket.far.secret.key]",
        "${env.NAME}",
    ),
    "setting": (
        {"sparkConf": {"spark.orders.password": SECRET}},
        "spec.sparkConf[spark.orders.password]",
        "a variable from which the script makes the setting",
    ),
    "argument": (
        {"application.args": ["--password", SECRET]},
        "spec.application.args[1]",
        "a variable that the script reads",
    ),
    "argument with its value": (
        {"application.args": [f"--password={SECRET}"]},
        "spec.application.args[0]",
        "a variable that the script reads",
    ),
    "variable": (TOKEN, "spec.application.env[API_TOKEN].value", "valueFrom.secretKeyRef"),
    "variable of a template": (
        {"executor.podTemplate": {"spec": {"containers": [SIDECAR]}}},
        "spec.executor.podTemplate.spec.containers[side].env[DB_PASSWORD].value",
        "valueFrom.secretKeyRef",
    ),
    "option of a channel": (
        {"control.channel.type": "Kafka", "control.channel.kafka": {"options": {"sasl.jaas.config": SECRET}}},
        "spec.control.channel.kafka.options[sasl.jaas.config]",
        "spec.control.channel.credentialsSecretRef",
    ),
    "address of a broker": (
        {"control.channel.type": "RabbitMQ", "control.channel.rabbitmq": {"uri": f"amqp://u:{SECRET}@h/v"}},
        "spec.control.channel.rabbitmq.uri",
        "spec.control.channel.credentialsSecretRef",
    ),
    "address of a file": (
        {"application.pyFiles": [f"https://u:{SECRET}@h/x.py"]},
        "spec.application.pyFiles[0]",
        "valueFrom.secretKeyRef",
    ),
    "address of the storage": (
        {"storage.endpoint": f"https://u:{SECRET}@h"},
        "spec.storage.endpoint",
        "spec.storage.credentialsSecretRef",
    ),
}


def everything_said(plan: Plan) -> str:
    """Return all that a plan has written for people: statuses and events, as whole documents."""
    statuses = [a.status for a in plan.actions if isinstance(a, WriteStatus | RecordLaunch)]
    events = [action.message for action in plan.actions if isinstance(action, PublishEvent)]
    return json.dumps([encode_status(status) for status in statuses]) + "".join(events) + plan.message


def events_of(plan: Plan) -> list[PublishEvent]:
    events = [action for action in plan.actions if isinstance(action, PublishEvent)]
    return [event for event in events if event.reason == Reason.PLAINTEXT_SECRET]


def running(change: dict[str, Any]) -> Observation:
    app = launched(app_with(change), phase=Phase.RUNNING)
    driver = running_driver(app, ready=True)
    return observe(app, driver=driver, agent=report_of(driver))


@pytest.mark.parametrize(("change", "field", "instead"), PLACES.values(), ids=PLACES)
def test_a_secret_is_named_with_its_field_and_what_to_use_and_the_application_is_launched(
    change: dict[str, Any], field: str, instead: str
) -> None:
    plan = decide(observe(app_with(change)), NOW)
    condition = status_of(plan).condition(PLAINTEXT_SECRETS)
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", Reason.PLAINTEXT_SECRET)
    assert condition.message.startswith(f"{field}: ")
    assert instead in condition.message
    (event,) = events_of(plan)
    assert (event.message, event.warning) == (condition.message, True)
    assert launch_of(plan).epoch == 1
    assert SECRET not in everything_said(plan)


def test_many_are_counted() -> None:
    env = [{"name": f"TOKEN_{number}", "value": SECRET} for number in range(7)]
    condition = status_of(decide(observe(app_with({"application.env": env})), NOW)).condition(PLAINTEXT_SECRETS)
    assert condition is not None
    assert "env[TOKEN_4].value and 2 more: plain text" in condition.message


@pytest.mark.parametrize(
    "change",
    [
        MOVED,
        {"sparkConf": {"spark.hadoop.fs.s3a.secret.key": "${env.KEY}"}},
        {"application.args": ["--password-file", "/etc/secrets/p", "--password", "$(PASSWORD)"]},
        {"application.env": [{"name": "API_TOKEN", "value": ""}]},
        {},
    ],
)
def test_references_are_not_told_of(change: dict[str, Any]) -> None:
    plan = decide(observe(app_with(change)), NOW)
    assert status_of(plan).condition(PLAINTEXT_SECRETS) is None
    assert events_of(plan) == []


def test_it_is_told_once_for_each_version_and_ends_with_the_edit() -> None:
    first = running(TOKEN)
    plan = decide(first, NOW)
    assert len(events_of(plan)) == 1
    app = written(first)
    again = observe(app, driver=first.driver, agent=first.agent)
    assert events_of(decide(again, NOW + 60)) == []
    moved = edited(app, MOVED)
    driver = running_driver(moved, ready=True)
    ended = decide(observe(moved, driver=driver, agent=report_of(driver)), NOW + 120)
    assert status_of(ended).condition(PLAINTEXT_SECRETS) is None


def test_the_application_is_ready_as_it_was() -> None:
    ready = status_of(decide(running(TOKEN), NOW)).condition("Ready")
    assert ready is not None
    assert (ready.status, ready.reason) == ("True", "Running")


# --- the stable version ---


def stable_of(app: StreamingApp, *, by_earlier_operator: bool = False) -> StableSpec:
    text = version_of(app.spec) if by_earlier_operator else recorded_version(app.spec)
    return StableSpec(spec_hash=spec_hash(app), spec=text, lineage=1, stable_time=BEGUN)


def failed_upgrade(new: dict[str, Any], old: dict[str, Any], *, by_earlier_operator: bool = False) -> Observation:
    """Return an application whose new version has failed at the gate."""
    before = app_with({IMAGE: A, **old})
    app = upgrading(
        launched(app_with({IMAGE: B, **new}), 2, phase=Phase.RUNNING), before, UpgradePhase.GATE, queries=("main",)
    )
    stable = stable_of(before, by_earlier_operator=by_earlier_operator)
    app = msgspec.structs.replace(app, status=msgspec.structs.replace(app.status, last_stable=stable))
    driver = running_driver(app, running=False, ended=ended_with(Reason.APPLICATION_FAILED, 1))
    return observe(app, driver=driver)


def test_a_version_that_becomes_stable_is_recorded_without_its_secret_under_the_same_hash() -> None:
    app = launched(app_with(TOKEN), phase=Phase.RUNNING)
    plan = decide(observe(app, **runs(app)), NOW)
    stable = status_of(plan).last_stable
    assert stable is not None
    assert stable.spec_hash == spec_hash(app)
    assert SECRET not in everything_said(plan)
    # And nothing follows from it: the driver that runs is of that version.
    after = written(observe(app, **runs(app)))
    assert decide(observe(after, **runs(after)), NOW + 60).reason == "Running"


def test_what_an_earlier_operator_recorded_with_secrets_is_cleaned_and_nothing_is_started_again() -> None:
    app = launched(app_with(TOKEN), phase=Phase.RUNNING)
    known = stable_of(app, by_earlier_operator=True)
    app = msgspec.structs.replace(app, status=msgspec.structs.replace(app.status, last_stable=known))
    assert SECRET in json.dumps(encode_status(app.status))
    plan = decide(observe(app, **runs(app)), NOW)
    assert SECRET not in everything_said(plan)
    assert (plan.reason, status_of(plan).upgrade) == ("Running", None)


@pytest.mark.parametrize(
    ("phase", "field"), [(UpgradePhase.GATE, "to_spec"), (UpgradePhase.FAILED, "to_spec"), (UpgradePhase.COMPLETED, "")]
)
def test_so_is_each_version_in_the_record_of_an_upgrade(phase: UpgradePhase, field: str) -> None:
    old, new = app_with({IMAGE: A, **TOKEN}), app_with({IMAGE: B, **TOKEN})
    app = upgrading(launched(new, 2, phase=Phase.RUNNING), old, phase, queries=("main",))
    assert app.status.upgrade is not None
    fields = {field: version_of(new.spec)} if field else {"previous": stable_of(old, by_earlier_operator=True)}
    status = msgspec.structs.replace(
        app.status,
        last_stable=stable_of(old if field else new),
        upgrade=msgspec.structs.replace(app.status.upgrade, **fields),
    )
    app = msgspec.structs.replace(app, status=status)
    assert SECRET in json.dumps(encode_status(app.status))
    known = status_of(decide(observe(app, driver=running_driver(app)), NOW))
    assert SECRET not in json.dumps(encode_status(known))
    assert known.upgrade is not None
    assert known.upgrade.phase is phase


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (TOKEN, {"name": "API_TOKEN", "value": SECRET}),
        (
            {"application.env": [{"name": "API_TOKEN", "value": "another-value"}]},
            {"name": "API_TOKEN", "value": "another-value"},
        ),
        (MOVED, {"name": "API_TOKEN", "valueFrom": REFERENCE}),
    ],
    ids=["the same", "another", "moved to a Secret"],
)
def test_a_rollback_takes_the_secret_that_the_spec_has_now_and_comes_to_rest(
    now: dict[str, Any], expected: dict[str, Any]
) -> None:
    failed = failed_upgrade(now, TOKEN)
    assert record(decide(failed, NOW)).phase is UpgradePhase.ROLLING_BACK
    app = written(failed)
    plan = decide(observe(app), NOW + 10)
    (create,) = [action for action in plan.actions if type(action).__name__ == "CreateDriver"]
    manifest = create.manifest  # type: ignore[union-attr] # of that type
    (container,) = manifest["spec"]["containers"]
    assert expected in container["env"]
    assert container["image"] == A
    old = spec_hash(app_with({IMAGE: A, **TOKEN}))
    assert manifest["metadata"]["annotations"]["tidegate.dev/spec-hash"] == old
    # Its driver is of the version that is to run, whatever the secret: nothing more is done.
    app = written(observe(app), NOW + 10)
    back = running_driver(launched(app_with({IMAGE: A, **TOKEN}), app.status.epoch), ready=True)
    seen = observe(app, driver=back, agent=report_of(back))
    done = written(seen, NOW + 20)
    assert done.status.upgrade is not None
    assert done.status.upgrade.phase is UpgradePhase.ROLLED_BACK
    assert done.status.applied_spec_hash == old
    assert SECRET not in json.dumps(encode_status(done.status))


ANOTHER = {"application.env": [{"name": "API_TOKEN", "value": "another-value"}]}


def test_an_edit_of_nothing_but_such_a_value_starts_the_stable_version_again() -> None:
    """No other one is known that it could be taken back to."""
    app = launched(app_with({IMAGE: A, **TOKEN}), 2, phase=Phase.RUNNING)
    stable = written(observe(app, **runs(app)))
    edit = edited(stable, {IMAGE: A, **ANOTHER})
    plan = decide(observe(edit, **runs(stable)), NOW)
    assert (plan.reason, status_of(plan).upgrade) == ("SpecChanged", None)
    last = status_of(plan).last_stable
    assert last is not None
    assert last.spec_hash == spec_hash(edit)


def test_a_rollback_to_what_differs_in_nothing_but_such_a_value_says_that_it_stays_and_how_it_is_corrected() -> None:
    stateless = {**ANOTHER, "upgrade.mode": "Stateless"}
    message = record(decide(failed_upgrade({**stateless, IMAGE: A}, TOKEN), NOW)).message
    assert "with the present values of spec.application.env[API_TOKEN].value: only there the versions differ" in message
    assert "correct them in the spec together with spec.restartNonce" in message
    # Where the image is another one as well, going back to that may be all that is needed.
    assert "restartNonce" not in record(decide(failed_upgrade(stateless, TOKEN), NOW)).message


def test_without_the_secret_the_new_version_stays_and_the_field_is_named() -> None:
    plan = decide(failed_upgrade({}, TOKEN), NOW)
    assert record(plan).phase is UpgradePhase.FAILED
    assert "spec.application.env[API_TOKEN].value of the stable version was a secret" in record(plan).message


def test_a_rollback_by_hand_waits_for_the_secret_and_says_so_while_the_new_version_runs() -> None:
    before, new = app_with({IMAGE: A, **TOKEN}), {IMAGE: B, "upgrade.rollbackTo": PIN}

    def seen(change: dict[str, Any]) -> Observation:
        app = launched(app_with({**new, **change}), 2, phase=Phase.RUNNING)
        app = upgrading(app, before, UpgradePhase.COMPLETED, previous=stable_of(before))
        status = msgspec.structs.replace(app.status, last_stable=stable_of(app))
        app = msgspec.structs.replace(app, status=status)
        return observe(app, **runs(app))

    without = status_of(decide(seen({}), NOW))
    ready = without.condition("Ready")
    assert ready is not None
    assert (ready.reason, without.phase) == (Reason.SECRET_NOT_RECORDED, Phase.RUNNING)
    assert "spec.application.env[API_TOKEN].value of that version" in ready.message
    assert record(decide(seen(MOVED), NOW)).phase is UpgradePhase.ROLLING_BACK


def test_a_version_with_secrets_of_an_earlier_operator_can_still_be_rolled_back_without_them_in_the_spec() -> None:
    plan = decide(failed_upgrade({}, TOKEN, by_earlier_operator=True), NOW)
    assert record(plan).phase is UpgradePhase.ROLLING_BACK


def test_another_number_restarts_a_version_with_a_secret_and_is_no_upgrade() -> None:
    app = launched(app_with(TOKEN), phase=Phase.RUNNING)
    app = msgspec.structs.replace(app, status=msgspec.structs.replace(app.status, last_stable=stable_of(app)))
    again = edited(app, {**TOKEN, "restartNonce": 1})
    status = status_of(decide(observe(again, **runs(app)), NOW))
    assert status.upgrade is None
    assert status.last_stable is not None
    assert status.last_stable.spec_hash == spec_hash(again)


@pytest.mark.parametrize("driver", [True, False], ids=["its driver is there", "its driver is gone"])
def test_an_edit_without_the_secret_does_not_wait_for_a_rollback_that_can_not_be_launched_any_more(
    driver: bool,
) -> None:
    app = written(failed_upgrade(TOKEN, TOKEN))
    newer = edited(app, {IMAGE: C})
    seen = {"driver": running_driver(app, epoch=2)} if driver else {}
    app = written(observe(newer, **seen), NOW + 10)
    plan = decide(observe(app), NOW + 20) if driver else decide(observe(newer), NOW + 10)
    config, upgrade = launch_of(plan), record(plan)
    assert (config.executor.image, config.lineage, config.start_from) == (C, 1, None)
    assert (upgrade.phase, upgrade.to_spec_hash) == (UpgradePhase.GATE, spec_hash(newer))
    assert upgrade.rollback_snapshot is not None
    # The one that failed is not tried again for want of the other.
    failed = edited(written(failed_upgrade(TOKEN, TOKEN)), {IMAGE: B, **TOKEN})
    assert failed.status.last_stable is not None
    unknown = msgspec.structs.replace(failed.status.last_stable, spec="[]")
    failed = msgspec.structs.replace(failed, status=msgspec.structs.replace(failed.status, last_stable=unknown))
    assert decide(observe(failed), NOW + 10).reason == "UpgradeRollingBack"


def _stable_with_secret() -> StreamingApp:
    app = launched(app_with({IMAGE: A, **TOKEN}), 1, phase=Phase.RUNNING)
    status = msgspec.structs.replace(app.status, last_stable=stable_of(app), state_partitions=4, batch=9)
    return msgspec.structs.replace(app, status=status)


def test_an_edit_without_the_secret_is_launched_on_the_number_of_partitions_that_its_state_has() -> None:
    """The version that wrote the state would divide it, and go on if that failed: it cannot start any more."""
    app = _stable_with_secret()
    newer = edited(app, {IMAGE: B, "state.partitions": 8, "upgrade.mode": "LastState"})
    stopping = written(observe(newer, **runs(app)))
    assert (record_of(stopping).phase, record_of(stopping).repartition) == (UpgradePhase.STOPPING, None)
    plan = decide(observe(stopping), NOW + 10)
    assert (launch_of(plan).executor.image, status_of(plan).state_partitions) == (B, 4)
    assert "StatePartitionsKept" in events(plan)


def test_a_newer_version_without_the_secret_follows_a_rollback_that_had_no_state_to_go_back_to() -> None:
    app = written(failed_upgrade(TOKEN, TOKEN))
    assert app.status.upgrade is not None
    without = msgspec.structs.replace(app.status.upgrade, rollback_snapshot=None)
    status = msgspec.structs.replace(app.status, upgrade=without, state_partitions=4)
    newer = edited(msgspec.structs.replace(app, status=status), {IMAGE: C, "state.partitions": 8})
    plan = decide(observe(newer), NOW + 10)
    assert (launch_of(plan).executor.image, status_of(plan).state_partitions) == (C, 4)


def test_where_nothing_runs_and_the_version_before_lacks_its_secret_the_field_is_named() -> None:
    app = _stable_with_secret()
    refused = written(observe(edited(app, {IMAGE: B, "upgrade.mode": "Stateless"}), **runs(app)))
    assert record_of(refused).phase is UpgradePhase.REFUSED
    plan = decide(observe(refused), NOW + 10)
    assert "The previous version continues" not in plan.message
    assert "previous version cannot start: spec.application.env[API_TOKEN].value of it was a secret" in plan.message
    assert plan.message.endswith("Put it into the spec again, or set the spec to a version that works.")


def record_of(app: StreamingApp) -> UpgradeStatus:
    assert app.status.upgrade is not None
    return app.status.upgrade
