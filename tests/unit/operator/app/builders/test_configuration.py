"""Configuration that is too long for a variable: what stays in the pod, what goes into its Secret, what is refused."""

import json
from typing import Any

import msgspec
import pytest

from tidegate.api.values.errors import TooLongError
from tidegate.app.builders.configuration import ConfiguredPod, secret_for
from tidegate.app.builders.driver import build_driver
from tidegate.app.builders.purge import build_purge_pod
from tidegate.app.builders.rehearsal_pod import build_rehearsal
from tidegate.pods.builders.driver_config import build_driver_config
from tidegate.pods.records.read_pods import Pod, build_record
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.configuration_protocol import (
    LONGEST_IN_VARIABLE,
    REST_DIRECTORY,
    REST_KEY,
    ConfigurationChangedError,
    put_together,
)
from tidegate_spark.contract.protocol import CONFIG_VARIABLE, DriverConfig, from_json
from tidegate_testing.observations import PLATFORM, app_with, launched
from tidegate_testing.rehearsals import rehearsing

SEEN: dict[str, Any] = {
    "application.args": ["x" * 4000] * 40,
    "sparkConf": {"spark.task.cpus": "2"},
    "executor.cores": 4,
}
"""As it was seen: no process could be started with it."""
SHORT = {**SEEN, "application.args": ["x" * 4000] * 10}


def built(change: dict[str, Any], epoch: int = 7) -> ConfiguredPod:
    return build_driver(app_with(change), epoch, 1, PLATFORM)


def text_of(pod: ConfiguredPod) -> str:
    (container,) = pod.manifest["spec"]["containers"]
    return next(each["value"] for each in container["env"] if each["name"] == CONFIG_VARIABLE)  # type: ignore[no-any-return] # text


def content_of(pod: ConfiguredPod) -> str:
    assert pod.secret is not None
    return pod.secret["stringData"][REST_KEY]  # type: ignore[no-any-return] # text


def record_of(pod: ConfiguredPod) -> PodRecord:
    metadata = {**pod.manifest["metadata"], "uid": "pod-1", "resourceVersion": "10"}
    return build_record(msgspec.json.decode(json.dumps({**pod.manifest, "metadata": metadata, "status": {}}), type=Pod))


def without_configuration(record: PodRecord) -> dict[str, Any]:
    fields = {name: getattr(record, name) for name in record.__dataclass_fields__}
    return {name: value for name, value in fields.items() if name not in ("configuration_secret", "spec_hash")}


def test_short_configuration_is_in_the_variable_whole_and_there_is_no_secret() -> None:
    pod = built(SHORT)
    assert pod.secret is None
    assert from_json(DriverConfig, text_of(pod)).args == tuple(SHORT["application.args"])
    assert REST_DIRECTORY not in str(pod.manifest)


def test_long_configuration_is_put_together_again_from_the_variable_and_the_secret() -> None:
    pod, short = built(SEEN), built(SHORT)
    whole = put_together(text_of(pod), content_of(pod).encode())
    assert whole.args == tuple(SEEN["application.args"])
    assert len(text_of(pod)) < LONGEST_IN_VARIABLE
    expected = build_driver_config(app_with(SEEN), 7, 1, PLATFORM)
    assert {**vars(whole), "agent_secret": ""} == vars(expected)
    assert from_json(DriverConfig, text_of(short)).spark_conf == whole.spark_conf


def test_the_secret_is_immutable_named_by_its_content_and_goes_with_the_pod() -> None:
    pod = built(SEEN)
    assert pod.secret is not None
    name = pod.secret["metadata"]["name"]
    assert name.startswith("orders-config-7-")
    assert secret_for(pod.secret, "orders-driver", "pod-1") == {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "immutable": True,
        "metadata": {
            "name": name,
            "namespace": "shop",
            "labels": {
                "tidegate.dev/app": "orders",
                "tidegate.dev/epoch": "7",
                "app.kubernetes.io/managed-by": "tidegate",
            },
            "annotations": {"tidegate.dev/app-uid": "u-1"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "orders-driver", "uid": "pod-1"}],
        },
        "stringData": {REST_KEY: content_of(pod)},
    }
    again, other = built(SEEN).secret, built({**SEEN, "application.args": ["y" * 4000] * 40}).secret
    assert again == pod.secret
    assert other is not None
    assert other["metadata"]["name"] != name


def test_the_pod_mounts_its_secret_and_waits_for_it() -> None:
    pod = built(SEEN)
    assert pod.secret is not None
    spec, (container,) = pod.manifest["spec"], pod.manifest["spec"]["containers"]
    (volume,) = [each for each in spec["volumes"] if each["name"] == "tidegate-configuration"]
    assert volume["secret"] == {"secretName": pod.secret["metadata"]["name"], "defaultMode": 0o440}
    mount = {"name": "tidegate-configuration", "mountPath": REST_DIRECTORY, "readOnly": True}
    assert mount in container["volumeMounts"]


def test_the_operator_reads_the_same_back_from_either_pod() -> None:
    long, short = record_of(built(SEEN)), record_of(built(SHORT))
    assert (long.epoch, long.executor_slots, long.signs) == (7, 2, True)
    assert long.configuration_secret.startswith("orders-config-7-")
    assert short.configuration_secret == ""
    assert without_configuration(long) == without_configuration(short)


def test_a_runtime_that_knows_of_no_secret_refuses_the_variable_alone() -> None:
    with pytest.raises(ValueError, match=r"DriverConfig\.main: missing"):
        from_json(DriverConfig, text_of(built(SEEN)))


@pytest.mark.parametrize("content", [b"", b"{}", b"not JSON"])
def test_another_content_is_never_taken(content: bytes) -> None:
    with pytest.raises(ConfigurationChangedError, match="orders-config-7-"):
        put_together(text_of(built(SEEN)), content)


def test_a_dollar_sign_is_no_reference_to_a_variable() -> None:
    pod = built({**SEEN, "application.args": ["$(HOME)" * 600] * 40})
    assert "$(" not in text_of(pod)
    assert put_together(text_of(pod), content_of(pod).encode()).args == ("$(HOME)" * 600,) * 40


TOO_LONG: dict[str, dict[str, Any]] = {
    "spec.application.args": {"application.args": ["é" * 100_000] * 4},
    "spec.sparkConf": {"sparkConf": {f"spark.my.{number}": "x" * 100_000 for number in range(11)}},
    "spec.application.env, spec.podTemplate and spec.executor.podTemplate": {
        "application.env": [{"name": f"RULES_{number}", "value": "x" * 100_000} for number in range(11)]
    },
}


@pytest.mark.parametrize("field", TOO_LONG)
def test_what_no_secret_takes_is_refused_with_the_field_and_the_remedy(field: str) -> None:
    with pytest.raises(TooLongError, match="a Secret takes 1,048,576") as caught:
        built(TOO_LONG[field])
    assert caught.value.field == field


def test_a_rehearsal_has_a_secret_of_its_own_and_not_the_drivers() -> None:
    app = rehearsing({"application.args": ["x" * 4000] * 40})
    pod = build_rehearsal(app, PLATFORM)
    assert pod.secret is not None
    volumes = [each["secret"]["secretName"] for each in pod.manifest["spec"]["volumes"] if "secret" in each]
    assert [name for name in volumes if "-config-" in name] == [pod.secret["metadata"]["name"]]
    mounts = pod.manifest["spec"]["containers"][0]["volumeMounts"]
    assert sum(each["mountPath"] == REST_DIRECTORY for each in mounts) == 1
    whole = put_together(text_of(pod), content_of(pod).encode())
    assert whole.rehearsal is not None
    assert len(whole.args) == 40


def test_a_pod_that_works_on_storage_has_none_of_what_may_be_long() -> None:
    options = {f"option.{number}": "é" * 2048 for number in range(64)}
    channel = {"kafka": {"bootstrapServers": "b:9092", "topic": "t", "options": options}}
    long: dict[str, Any] = {
        **TOO_LONG["spec.application.args"],
        **TOO_LONG["spec.sparkConf"],
        "control.channel": channel,
    }
    long["storage.uri"] = f"s3://streams/{'p' * 490}"
    long["application.env"] = [{"name": "AWS_PROFILE", "value": "x" * 140_000}, {"name": "AWS_REGION", "value": "eu"}]
    pod = build_purge_pod(launched(app_with(long), epoch=3), PLATFORM)
    (container,) = pod["spec"]["containers"]
    assert max(len(str(each.get("value", ""))) for each in container["env"]) < 8 * 1024
    assert [each["name"] for each in container["env"] if each["name"].startswith("AWS_")] == ["AWS_REGION"]
