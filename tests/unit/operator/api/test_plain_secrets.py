"""A version without its secrets, and with those of another spec in their places. Pure."""

import json
from typing import Any

import msgspec
import pytest

from tidegate.api.spec_hash import held_version, recorded_version, spec_hash, version_of
from tidegate.api.streaming_app import StableSpec, StreamingApp
from tidegate.api.values.plain_secrets import (
    LONGEST_TEXT,
    MOST_VALUES,
    NOT_REPEATED,
    SecretGoneError,
    plain_secrets,
    without_secrets,
    without_secrets_of,
)
from tidegate_spark.contract.secret_shapes import REDACTED
from tidegate_testing.observations import app_with

SIDECAR = {"name": "side", "env": [{"name": "SIDE_SECRET", "value": "side-secret-1"}], "args": ["--token", "side-tok"]}
CHANGE: dict[str, Any] = {
    "sparkConf": {
        "spark.hadoop.fs.s3a.bucket.far.secret.key": "setting-1",
        "spark.orders.url": "jdbc:x://u:setting-2@old/db",
        "spark.sql.session.timeZone": "UTC",
    },
    "application.args": ["--password", "argument-1", "--api-token=argument-2", "amqp://u:argument-3@h/v", "topic"],
    "application.env": [
        {"name": "API_TOKEN", "value": "variable-1"},
        {"name": "LEVEL", "value": "info"},
        {"name": "URL", "value": "https://u:variable-2@h/p"},
    ],
    "application.pyFiles": ["https://u:file-1@h/x.py"],
    "driver.podTemplate": {"spec": {"containers": [SIDECAR]}},
}
PLANTED = (
    *("setting-1", "setting-2", "argument-1", "argument-2", "argument-3", "variable-1", "variable-2", "file-1"),
    *("side-secret-1", "side-tok"),
)
APP = app_with(CHANGE)


def recorded(app: StreamingApp) -> StableSpec:
    return StableSpec(spec_hash=spec_hash(app), spec=recorded_version(app.spec))


def held(present: StreamingApp, of: StreamingApp = APP) -> Any:
    """Return what makes a version that is run again beside another spec."""
    return json.loads(version_of(held_version(present.spec, recorded(of))))


def changed(**fields: Any) -> StreamingApp:
    return app_with({**CHANGE, **{path.replace("__", "."): value for path, value in fields.items()}})


def test_each_secret_is_found_with_its_field() -> None:
    found = {each.value: each.field for each in plain_secrets(version_of(APP.spec))}
    assert found == {
        "setting-1": "spec.sparkConf[spark.hadoop.fs.s3a.bucket.far.secret.key]",
        "setting-2": "spec.sparkConf[spark.orders.url]",
        "argument-1": "spec.application.args[1]",
        "argument-2": "spec.application.args[2]",
        "argument-3": "spec.application.args[3]",
        "variable-1": "spec.application.env[API_TOKEN].value",
        "variable-2": "spec.application.env[URL].value",
        "file-1": "spec.application.pyFiles[0]",
        "side-secret-1": "spec.driver.podTemplate.spec.containers[side].env[SIDE_SECRET].value",
        "side-tok": "spec.driver.podTemplate.spec.containers[side].args[1]",
    }


def test_a_recorded_version_has_none_of_them_and_all_else() -> None:
    shown = recorded_version(APP.spec)
    assert [secret for secret in PLANTED if secret in shown] == []
    fields, whole = json.loads(shown), json.loads(version_of(APP.spec))
    assert fields["sparkConf"]["spark.orders.url"] == f"jdbc:x://u:{REDACTED}@old/db"
    assert fields["application.args"] == [
        *("--password", REDACTED, f"--api-token={REDACTED}", f"amqp://u:{REDACTED}@h/v", "topic"),
    ]
    assert {path for path in whole if fields[path] == whole[path]} == set(whole) - set(CHANGE)


def test_one_without_secrets_is_recorded_to_the_letter() -> None:
    app = app_with({"sparkConf": {"spark.sql.session.timeZone": "UTC"}})
    assert recorded_version(app.spec) == version_of(app.spec)
    assert without_secrets("") == ""


def test_with_the_same_secrets_in_the_spec_it_is_what_it_was() -> None:
    image = changed(application__image="shop/orders:9")
    assert held(image) == json.loads(version_of(APP.spec))


def test_a_secret_that_was_changed_is_the_new_one_and_the_version_is_the_same() -> None:
    rotated = app_with(json.loads(json.dumps(CHANGE).replace("-1", "-new").replace("@old", "@elsewhere")))
    spec = held_version(rotated.spec, recorded(APP))
    fields = json.loads(version_of(spec))
    assert fields["application.env"][0]["value"] == "variable-new"
    assert fields["application.args"][1] == "argument-new"
    # The secret alone is taken from there.
    assert fields["sparkConf"]["spark.orders.url"] == "jdbc:x://u:setting-2@old/db"
    assert spec_hash(app_with({})) != spec_hash(APP)
    assert spec_hash(_with_spec(rotated, spec)) == spec_hash(APP)


def _with_spec(app: StreamingApp, spec: Any) -> StreamingApp:
    return msgspec.structs.replace(app, spec=spec)


def test_arguments_are_found_by_their_option_wherever_they_stand() -> None:
    moved = changed(application__args=["first", "amqp://u:argument-3@h/v", "--api-token=b", "--password", "a"])
    assert held(moved)["application.args"] == ["--password", "a", "--api-token=b", "amqp://u:argument-3@h/v", "topic"]


def test_a_variable_that_was_moved_to_a_secret_comes_from_there() -> None:
    reference = {"secretKeyRef": {"name": "api", "key": "token"}}
    moved = changed(application__env=[{"name": "API_TOKEN", "valueFrom": reference}, *CHANGE["application.env"][1:]])
    assert held(moved)["application.env"][0] == {"name": "API_TOKEN", "valueFrom": reference}


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"application__env": CHANGE["application.env"][1:]}, "spec.application.env[API_TOKEN].value"),
        ({"application__args": ["topic"]}, "spec.application.args[1]"),
        ({"sparkConf": {}}, "spec.sparkConf[spark.hadoop.fs.s3a.bucket.far.secret.key]"),
        ({"sparkConf": {**CHANGE["sparkConf"], "spark.orders.url": "x"}}, "spec.sparkConf[spark.orders.url]"),
        ({"driver__podTemplate": {}}, "spec.driver.podTemplate.spec.containers[side]"),
    ],
)
def test_a_secret_that_is_gone_is_named(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(SecretGoneError) as gone:
        held(changed(**fields))
    assert gone.value.field.startswith(named)


def test_an_answer_quotes_no_secret_of_the_pod_that_it_is_about() -> None:
    config = {"spark_conf": {"spark.a.password": "of-the-launch"}, "args": ["--token", "of-an-argument"]}
    env = [{"name": "TIDEGATE_CONFIG", "value": json.dumps(config)}, {"name": "DB_PASSWORD", "value": "hunter22"}]
    pod = {"kind": "Pod", "spec": {"containers": [{"name": "driver", "env": env}]}}
    reported = f'spec.containers[0].env[1].value: Invalid value: "hunter22"; {json.dumps(config)}'
    shown = without_secrets_of(pod, reported)
    assert [secret for secret in ("hunter22", "of-the-launch", "of-an-argument") if secret in shown] == []
    assert shown.startswith(f'spec.containers[0].env[1].value: Invalid value: "{REDACTED}"')
    secret = {"kind": "Secret", "stringData": {"token": "of-the-agent"}}
    assert without_secrets_of(secret, "of-the-agent: no") == f"{REDACTED}: no"


@pytest.mark.parametrize("env", [None, "x", [{"name": "TIDEGATE_CONFIG", "value": "{"}], [3]])
def test_an_answer_about_a_pod_of_any_form_is_shown(env: Any) -> None:
    pod = {"kind": "Pod", "spec": {"containers": [{"name": "driver", "env": env}]}}
    assert without_secrets_of(pod, "no") == "no"


def pod_with(*passwords: str) -> dict[str, Any]:
    words = [f"--password={password}" for password in passwords]
    return {"kind": "Pod", "spec": {"containers": [{"name": "sidecar", "args": words}]}}


def test_of_an_answer_that_quotes_a_megabyte_the_beginning_is_repeated_and_no_part_of_a_secret() -> None:
    """Ten thousand passwords in a template, looked for in such an answer, held the operator up for seconds."""
    secret = "correct-horse-battery-staple"
    for begin in range(LONGEST_TEXT - len(secret), LONGEST_TEXT + 1):
        shown = without_secrets_of(pod_with(secret), "no " * (begin // 3) + "-" * (begin % 3) + secret + "x" * 10**6)
        assert shown.startswith("no no no")
        assert len(shown) <= LONGEST_TEXT + 1
        assert secret[:4] not in shown


def test_of_an_object_with_more_secrets_than_anybody_has_no_answer_is_repeated() -> None:
    passwords = [f"correct-horse-{number:05}" for number in range(MOST_VALUES + 1)]
    shown = without_secrets_of(pod_with(*passwords), f"spec: not {passwords[7]}")
    assert shown == NOT_REPEATED
