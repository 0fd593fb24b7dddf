"""The driver is told of the application's channel, and is given its Secret."""

import json
from typing import Any

import pytest

from tidegate.app.builders.driver import build_driver_pod
from tidegate.pods.records.platform import Platform
from tidegate_spark.contract.control_protocol import (
    CHANNEL_CREDENTIALS_DIRECTORY,
    ChannelSettings,
    ControlSettings,
    InboxSettings,
    KafkaSettings,
    ModelSettings,
    RabbitSettings,
)
from tidegate_spark.contract.protocol import CONFIG_VARIABLE, DriverConfig, from_json
from tidegate_testing.values import app

PLATFORM = Platform(operator_image="tidegate/operator:1")
KAFKA = {
    "control.channel.type": "Kafka",
    "control.channel.kafka.bootstrapServers": "b:9092",
    "control.channel.kafka.topic": "control",
}


def pod(values: dict[str, Any]) -> dict[str, Any]:
    return build_driver_pod(app(values), 3, 1, PLATFORM)


def config(values: dict[str, Any]) -> DriverConfig:
    (container,) = pod(values)["spec"]["containers"]
    (value,) = [item["value"] for item in container["env"] if item["name"] == CONFIG_VARIABLE]
    return from_json(DriverConfig, json.dumps(json.loads(value)))


def mounts(values: dict[str, Any]) -> list[str]:
    (container,) = pod(values)["spec"]["containers"]
    return [mount["mountPath"] for mount in container["volumeMounts"]]


def test_without_a_channel_the_driver_knows_of_none() -> None:
    assert config({}).channel is None
    assert CHANNEL_CREDENTIALS_DIRECTORY not in mounts({})


def test_models_come_from_the_applications_own_files_unless_the_spec_says_from_where() -> None:
    assert config({}).control == ControlSettings(
        ModelSettings((f"{config({}).storage.uri}/",), 2 * 1024**3), message_timeout_seconds=60.0
    )
    values = {
        "control.messageTimeoutSeconds": 300,
        "control.models.allowedPrefixes": ["s3://models/orders/"],
        "control.models.sizeLimit": "500Mi",
    }
    assert config(values).control == ControlSettings(ModelSettings(("s3://models/orders/",), 500 * 1024**2), 300.0)
    assert config({"control.models.allowedPrefixes": []}).control.models.allowed_prefixes == ()


def test_a_topic_is_told_with_all_that_was_said_of_it() -> None:
    more = {
        "control.channel.kafka.replyTopic": "replies",
        "control.channel.kafka.startingOffsets": "Latest",
        "control.channel.kafka.options": {"security.protocol": "SSL"},
        "control.channel.credentialsSecretRef.name": "broker",
        "control.channel.allowedTypes": ["ping"],
    }
    kafka = KafkaSettings("b:9092", "control", "replies", from_latest=True, options={"security.protocol": "SSL"})
    assert config({**KAFKA, **more}).channel == ChannelSettings(kafka, None, "broker", types=("ping",))


def test_a_queue_is_told_likewise() -> None:
    values = {
        "control.channel.type": "RabbitMQ",
        "control.channel.rabbitmq.uri": "amqp://b/shop",
        "control.channel.rabbitmq.queue": "control",
    }
    assert config(values).channel == ChannelSettings(rabbitmq=RabbitSettings("amqp://b/shop", "control"))


@pytest.mark.parametrize(
    ("said", "reported"),
    [
        ({}, InboxSettings(1.0, 86400.0)),
        ({"pollIntervalSeconds": 5, "replyRetentionSeconds": 1800}, InboxSettings(5.0, 1800.0)),
        ({"replyRetentionSeconds": 0}, InboxSettings(1.0, 0.0)),
    ],
)
def test_an_inbox_is_told_if_it_is_asked_for(said: dict[str, Any], reported: InboxSettings) -> None:
    assert config({"control.channel": {"type": "Storage", "storage": said}}).channel == ChannelSettings(
        storage=reported
    )


def test_a_secret_is_mounted_and_need_not_be_there_yet() -> None:
    values = {**KAFKA, "control.channel.credentialsSecretRef.name": "broker"}
    assert CHANNEL_CREDENTIALS_DIRECTORY in mounts(values)
    (volume,) = [it for it in pod(values)["spec"]["volumes"] if it.get("secret", {}).get("secretName") == "broker"]
    assert volume["secret"]["optional"] is True
    assert CHANNEL_CREDENTIALS_DIRECTORY not in mounts(KAFKA)
