"""The published schema of events in protobuf, compiled by the library, so that tests write what producers write."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

from devcluster import paths

PUBLISHED = paths.ROOT / "spark_app/tidegate_spark/control/channels/proto/cloudevent.proto"
_PACKAGE = "io.cloudevents.v1"
_TYPES = {"bool": 8, "int32": 5, "string": 9, "bytes": 12}
_FIELD = re.compile(r"([\w.]+) (\w+) = (\d+);")


def fields_in(text: str) -> dict[str, tuple[str, int]]:
    """Return name -> type and number of the fields that a piece of a schema has."""
    return {name: (kind, int(number)) for kind, name, number in _FIELD.findall(text)}


def _add(message: Any, fields: dict[str, tuple[str, int]], oneof: dict[str, int]) -> None:
    for name, (kind, number) in fields.items():
        field = message.field.add(name=name, number=number, label=1)
        if kind in _TYPES:
            field.type = _TYPES[kind]
        else:
            field.type, field.type_name = 11, f".{kind}"
        if name in oneof:
            field.oneof_index = oneof[name]


def compiled(published: Path = PUBLISHED) -> Any:
    """Return the class of an event, of the schema as it is published: no compiler is needed for so few fields."""
    text = re.sub(r"//.*", "", published.read_text())
    outer, _, value = text.partition("message CloudEventAttributeValue")
    file = descriptor_pb2.FileDescriptorProto(name="cloudevent.proto", package=_PACKAGE, syntax="proto3")
    file.dependency.extend(["google/protobuf/any.proto", "google/protobuf/timestamp.proto"])
    message = file.message_type.add(name="CloudEvent")
    message.oneof_decl.add(name="data")
    data = fields_in(outer.partition("oneof data")[2])
    _add(message, fields_in(outer.partition("oneof data")[0]), {})
    _add(message, data, dict.fromkeys(data, 0))
    attribute = message.nested_type.add(name="CloudEventAttributeValue")
    attribute.oneof_decl.add(name="attr")
    kinds = fields_in(value)
    _add(attribute, kinds, dict.fromkeys(kinds, 0))
    (number,) = re.findall(r"map<string, CloudEventAttributeValue> attributes = (\d+);", outer)
    entry = message.nested_type.add(name="AttributesEntry")
    entry.options.map_entry = True
    _add(entry, {"key": ("string", 1), "value": (f"{_PACKAGE}.CloudEvent.CloudEventAttributeValue", 2)}, {})
    name = f".{_PACKAGE}.CloudEvent.AttributesEntry"
    message.field.add(name="attributes", number=int(number), label=3, type=11, type_name=name)
    pool = descriptor_pool.DescriptorPool()
    for known in (any_pb2, timestamp_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.CloudEvent"))


CloudEvent = compiled()
