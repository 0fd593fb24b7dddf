"""Messages: why a message is not taken from a channel, or a channel is not read. No I/O."""

from __future__ import annotations

NO_EXPIRY_TIME = "'expirytime' of the event must be a time, such as 2026-01-31T12:00:00Z."

NOT_ONE_EVENT = "The message is JSON, and not an object: one event is understood at a time."
DATA_TWICE = "The event has 'data' and 'data_base64'."
NO_BATCH = "The object is no batch of events."
NO_JAR = "The image has no tidegate-spark.jar in Spark's jars."

NO_KAFKA_CLIENTS = "The image has no Kafka clients (they come with Spark's Kafka connector)"
KAFKA_REJECTS = "Kafka rejects the credentials, or they do not suffice"
NO_TOPIC = "Kafka has no such topic"
KAFKA_SETTINGS = "Kafka's clients do not understand their settings (spec.control.channel.kafka)"
KAFKA_SILENT = "Kafka does not answer"
NO_QUEUE = "RabbitMQ has no such queue"
QUEUE_IN_USE = "The queue has another reader; this driver waits until it is alone"


def log_not_written(kind: str, error: Exception) -> str:
    return f"The control log cannot be written, so nothing is taken from {kind}: {error}"


def rabbitmq_rejects(answer: str) -> str:
    return f"RabbitMQ rejects the credentials, or they do not suffice: {answer}"


def rabbitmq_forbids(answer: str) -> str:
    return f"RabbitMQ does not allow it: {answer}"


def rabbitmq_silent(answer: str) -> str:
    return f"RabbitMQ does not answer: {answer}"


def unconfirmed(seconds: float) -> str:
    return f"RabbitMQ has not confirmed all replies within {seconds:.0f} s; messages are read on meanwhile"


def too_many_asked(most: int) -> str:
    return f"{most} messages of types snapshot and dump-state are not done yet: send it again later."


def another_id(text: str) -> str:
    return f"{text} Use another id then."


def type_not_allowed(kind: str) -> str:
    return f"Messages of type {kind!r} are not taken from the channel (spec.control.channel.allowedTypes)."


def payload_too_long_for_channel(size: int, longest: int) -> str:
    return f"The payload has {size} bytes, and of this type at most {longest} are taken from a channel."


def secret_missing(name: str) -> str:
    return f"Secret {name!r} of the control channel is not there, or is empty."


def message_too_long(size: int, longest: int) -> str:
    return f"The message has {size} bytes, and at most {longest} are looked into."


def message_unreadable(error: Exception) -> str:
    return f"The message cannot be read: {error}."


def content_type_unknown(content_type: str, json_type: str, protobuf_type: str) -> str:
    return f"Content type {content_type!r:.100} is not understood: {json_type} is, and {protobuf_type}."


def not_base64(error: Exception) -> str:
    return f"'data_base64' of the event is not base64: {error}."


def data_not_json(error: Exception) -> str:
    return f"The event's data is not JSON: {error}."


def data_of_other_kind(kind: str) -> str:
    return f"The event's data is {kind!r:.100}: JSON is understood."


def not_structured(found: str, version: str) -> str:
    return f"The message has {found}: it must be a CloudEvent {version}, whole in the message (structured mode)."


def attribute_missing(name: str) -> str:
    return f"The event has no {name!r}, or one that is no text."


def attribute_too_long(name: str, length: int, longest: int) -> str:
    return f"{name!r} of the event has {length} characters, and at most {longest} are taken."


def object_unreadable(error: Exception) -> str:
    return f"The object cannot be read: {error}."


def object_too_long(size: int, longest: int) -> str:
    return f"The object has {size} bytes, and at most {longest} are looked into."


def object_withheld(code: str) -> str:
    return f"The storage does not give the object out ({code}): it is archived, or encrypted with a key of its own."


def connected(kind: str) -> str:
    return f"The control channel ({kind}) is connected again."


def waiting_there(message: str, kind: str) -> str:
    return f"{message} The application continues; messages from {kind} wait there."


def messages_lost(partition: str, offset: int) -> str:
    return f"{partition} ends before offset {offset}, up to which it was read: the broker has lost messages."


def offsets_removed(topic: str, number: int) -> str:
    return f"Topic {topic!r} has removed {number} offsets that were not read yet."


def topic_made_anew(topic: str) -> str:
    return f"Topic {topic!r} was deleted and created again: the new one is read from its first message on."


def reply_too_large(message: str, topic: str) -> str:
    return (
        f"Topic {topic!r} takes no reply as large as that to message {message!r}, also without its details: it is "
        "dropped. Raise max.message.bytes of the topic."
    )


def at_broker(text: str, where: str, servers: str) -> str:
    return f"{text} ({where} at {servers})."


def jvm_silent(error: object) -> str:
    return f"The driver's JVM does not answer: {error!r}."


def uri_unusable(uri: str, error: Exception) -> str:
    return f"spec.control.channel.rabbitmq.uri {uri!r} cannot be used: {error!r}."


def queue_gone(queue: str) -> str:
    return f"RabbitMQ has queue {queue!r} no more."


def contended(key: str, attempts: int) -> str:
    return f"{key} was written {attempts} times by others meanwhile."


def inbox_unusable(error: Exception) -> str:
    return f"The inbox cannot be used: {error!r:.300}."
