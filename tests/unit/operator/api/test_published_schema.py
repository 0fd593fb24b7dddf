"""The CRD, the model, the table of change classes and the reference say the same. Reads files of the checkout."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from docs import generate_reference
from docs.former_names import without_former_names
from tidegate.api.change_classes import CHANGE_CLASSES, ChangeClass, fields_of
from tidegate.api.control_message import ControlMessageSpec, ControlMessageStatus
from tidegate.api.stream_snapshot import StreamSnapshotSpec, StreamSnapshotStatus
from tidegate.api.streaming_app import StreamingAppSpec, StreamingAppStatus
from tidegate.pods.reserved.reserved_env import CREDENTIALS, PREFIX, PREFIX_REMEDY, SPARKS, SPARKS_REMEDY
from tidegate_spark.contract.owned_settings import IN_EFFECT, OWNED_KEYS, OWNED_STARTS
from tidegate_testing import plain_yaml

CRD: dict[str, Any] = plain_yaml.load(generate_reference.SOURCE.read_text())
(VERSION,) = CRD["spec"]["versions"]
ROOT: dict[str, Any] = without_former_names(VERSION["schema"]["openAPIV3Schema"])
SPEC, STATUS = ROOT["properties"]["spec"], ROOT["properties"]["status"]
READ_STATUS: dict[str, Any] = VERSION["schema"]["openAPIV3Schema"]["properties"]["status"]
"""With the former names that the operator still reads."""
(SNAPSHOT_VERSION,) = plain_yaml.load(generate_reference.SNAPSHOT_SOURCE.read_text())["spec"]["versions"]
SNAPSHOT: dict[str, Any] = without_former_names(SNAPSHOT_VERSION["schema"]["openAPIV3Schema"]["properties"])
(MESSAGE_VERSION,) = plain_yaml.load(generate_reference.MESSAGE_SOURCE.read_text())["spec"]["versions"]
MESSAGE: dict[str, Any] = without_former_names(MESSAGE_VERSION["schema"]["openAPIV3Schema"]["properties"])
FREE_FORM = {"env", "podTemplate", "sparkConf"}


def schema_fields(schema: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for name, child in schema.get("properties", {}).items():
        yield f"{prefix}{name}"
        if name not in FREE_FORM:
            yield from schema_fields(child.get("items", child), f"{prefix}{name}.")


def model_fields(kind: Any, prefix: str = "") -> Iterator[str]:
    for field in kind.fields:
        yield f"{prefix}{field.encode_name}"
        for part in struct_types(field.type):
            yield from model_fields(part, f"{prefix}{field.encode_name}.")


def struct_types(kind: Any) -> list[Any]:
    if isinstance(kind, msgspec.inspect.StructType):
        return [kind]
    if isinstance(kind, msgspec.inspect.UnionType):
        return [found for part in kind.types for found in struct_types(part)]
    return struct_types(kind.item_type) if isinstance(kind, msgspec.inspect.VarTupleType) else []


@pytest.mark.parametrize(
    ("schema", "model"),
    [
        (SPEC, StreamingAppSpec),
        (READ_STATUS, StreamingAppStatus),
        (SNAPSHOT["spec"], StreamSnapshotSpec),
        (SNAPSHOT["status"], StreamSnapshotStatus),
        (MESSAGE["spec"], ControlMessageSpec),
        (MESSAGE["status"], ControlMessageStatus),
    ],
    ids=["spec", "status", "a snapshot's spec", "a snapshot's status", "a message's spec", "a message's status"],
)
def test_schema_and_model_have_the_same_fields(schema: dict[str, Any], model: type) -> None:
    in_schema, in_model = schema_fields(schema), model_fields(msgspec.inspect.type_info(model))
    assert (sorted(set(in_schema) - set(in_model)), sorted(set(in_model) - set(in_schema))) == ([], []), (
        f"the first are only in crds/*.yaml: add them to {model.__name__} or its parts, in {model.__module__}; the "
        "second are only in the model: add them to the schema"
    )


def defaults(schema: dict[str, Any]) -> Any:
    """Return what the API server fills in: nested defaults of objects that have one."""
    return {
        name: {**child["default"], **defaults(child)} if child.get("type") == "object" else child["default"]
        for name, child in schema.get("properties", {}).items()
        if "default" in child
    }


def test_the_models_defaults_are_those_of_the_schema() -> None:
    required = {"application": {"image": "i", "main": "m"}, "storage": {"uri": "u"}}
    filled = {name: required[name] | defaults(SPEC["properties"][name]) for name in required}
    filled |= {name: value for name, value in defaults(SPEC).items() if name not in required}
    from_schema = msgspec.convert(filled, StreamingAppSpec)
    assert from_schema == msgspec.convert(required, StreamingAppSpec)
    assert filled["executor"] == {"instances": 1, "cores": 1, "resources": {}}


@pytest.mark.parametrize("status", [STATUS, SNAPSHOT["status"], MESSAGE["status"]], ids=["app", "snapshot", "message"])
def test_a_resource_that_nobody_has_seen_is_of_no_generation(status: dict[str, Any]) -> None:
    """What has no generation and no conditions is ready to kstatus."""
    assert status["default"] == {"observedGeneration": -1}
    assert status["properties"]["observedGeneration"]["minimum"] == -1


def test_no_executors_are_refused_with_what_stops_the_application() -> None:
    ((rule, message),) = rules_of("executor", "instances")
    assert rule == "self >= 1"
    assert "at least 1" in message
    assert "set spec.suspend to true" in message


def test_the_number_of_executors_is_one_of_numbers_for_scale_and_a_text_for_people() -> None:
    (version,) = CRD["spec"]["versions"]
    scale = version["subresources"]["scale"]
    assert scale["statusReplicasPath"] == ".status.executors.running"
    (column,) = [each for each in version["additionalPrinterColumns"] if each["name"] == "Executors"]
    assert (column["type"], column["jsonPath"]) == ("string", ".status.executors.summary")


@pytest.mark.parametrize("role", ["driver", "executor"])
def test_the_two_limits_of_memory_are_one_sentence_whichever_is_broken(role: str) -> None:
    """Who corrects the memory as the first refusal says is not refused again."""
    rules = [*rules_of(), *rules_of(role, "resources", "requests")]
    broken = {
        limit: message
        for limit in ("750Mi", "512Mi")
        for rule, message in rules
        if f"('{limit}')" in rule and role in message
    }
    assert len(broken) == 2
    assert len(set(broken.values())) == 1


def test_each_setting_that_tidegate_owns_has_its_rule() -> None:
    rules = SPEC["properties"]["sparkConf"]["x-kubernetes-validations"]
    owned = {rule["rule"]: rule["message"] for rule in rules if rule["rule"].startswith("!(")}
    assert owned == {
        f"!('{key}' in self)": f"sparkConf: {key} cannot be set: {remedy}" for key, remedy in OWNED_KEYS.items()
    }


def rule_of(start: str) -> str:
    """Return the rule that no setting starts so but for those that have an answer of their own."""
    keys = [key for key in (*OWNED_KEYS, *IN_EFFECT) if key.startswith(start)]
    starts = [other for other in OWNED_STARTS if other != start and other.startswith(start)]
    apart = [f"key in [{', '.join(repr(key) for key in keys)}]"] if keys else []
    others = [f"key.startsWith('{other}')" for other in starts]
    clauses = " || ".join([f"!key.startsWith('{start}')", *apart, *others])
    return f"self.all(key, {clauses})"


def test_each_start_of_settings_that_have_no_effect_has_its_rule() -> None:
    rules = rules_of("sparkConf")
    for start, remedy in OWNED_STARTS.items():
        assert (rule_of(start), f"sparkConf: {start}* cannot be set: {remedy}") in rules


def rules_of(*path: str) -> list[tuple[str, str]]:
    schema = SPEC
    for name in path:
        schema = schema["items"] if name == "[]" else schema["properties"][name]
    return [(rule["rule"], rule["message"]) for rule in schema["x-kubernetes-validations"]]


def reserved(subject: str) -> tuple[tuple[str, str], ...]:
    """Return what is refused of a variable, and the words for it."""
    names = ", ".join(f"'{name}'" for name in SPARKS)
    return (f"!{subject}.startsWith('{PREFIX}')", PREFIX_REMEDY), (f"!({subject} in [{names}])", SPARKS_REMEDY)


def test_each_variable_that_is_reserved_has_its_rule_for_the_application() -> None:
    rules = rules_of("application", "env", "[]")
    for rule, remedy in reserved("self.name"):
        assert (rule, f"application.env: {remedy}") in rules
    names = ", ".join(f"'{name}'" for name in CREDENTIALS)
    assert any(f"self.application.env.all(e, !(e.name in [{names}]))" in rule for rule, _ in rules_of())


@pytest.mark.parametrize("role", ["driver", "executor"])
def test_each_variable_that_is_reserved_has_its_rule_for_templates(role: str) -> None:
    rules = rules_of(role, "podTemplate", "spec", "containers", "[]")
    assert rules == [
        (
            f"self.name != '{role}' || !has(self.env) || self.env.all(e, {rule})",
            f"{role}.podTemplate, env of the container {role}: {remedy}",
        )
        for rule, remedy in reserved("e.name")
    ]
    names = ", ".join(f"'{name}'" for name in CREDENTIALS)
    message = f"c.name != '{role}' || !has(c.env) || c.env.all(e, !(e.name in [{names}]))"
    assert any(f"self.{role}.podTemplate.spec.containers.all(c, {message})" in rule for rule, _ in rules_of())


def test_each_remedy_names_a_field_that_exists() -> None:
    remedies = [*OWNED_KEYS.values(), *OWNED_STARTS.values(), SPARKS_REMEDY]
    named = {match for remedy in remedies for match in re.findall(r"use ([A-Za-z.]+[A-Za-z])", remedy)}
    resources = {re.sub(r"\.resources\.(requests|limits)\.\w+$", r".resources.\1", field) for field in named}
    assert resources - set(schema_fields(SPEC)) == set(), (
        "a remedy in contract/owned_settings.py names these, which are no fields of the spec"
    )


def test_each_field_is_described() -> None:
    fields = [*generate_reference.walk(SPEC), *generate_reference.walk(STATUS)]
    assert [field.path for field in fields if not field.schema.get("description", "").endswith(".")] == [], (
        "describe these in crds/streamingapps.tidegate.dev.yaml, in whole sentences"
    )


def test_each_list_map_and_text_of_the_spec_has_a_limit() -> None:
    limit = {"array": "maxItems", "string": "maxLength"}
    free = {"driver.podTemplate.metadata.annotations", "executor.podTemplate.metadata.annotations"}
    unlimited = [
        field.path
        for field in generate_reference.walk(SPEC)
        if field.path not in free
        and field.schema.get("type") in limit
        and "enum" not in field.schema
        and limit[field.schema["type"]] not in field.schema
    ]
    assert unlimited == [], "give these a maxItems or maxLength in crds/streamingapps.tidegate.dev.yaml"


def test_the_crd_publishes_the_table_of_change_classes() -> None:
    published = generate_reference.published(CHANGE_CLASSES)
    assert CRD["metadata"]["annotations"][generate_reference.ANNOTATION] == published


def test_the_reference_is_what_the_generator_writes() -> None:
    assert generate_reference.TARGET.read_text() == generate_reference.render(CRD, CHANGE_CLASSES)


def test_a_reference_that_differs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    stale = generate_reference.ROOT / "docs" / "reference" / "missing.md"
    monkeypatch.setattr(generate_reference, "TARGET", stale)
    assert generate_reference.main(["--check"]) == 1


def test_the_upgrade_names_exactly_the_fields_whose_edit_makes_a_version() -> None:
    text = SPEC["properties"]["upgrade"]["description"]
    (listed,) = re.findall(r"streamingapp\.md\): (.*?)\. A version is stable", text)
    named = set(re.findall(r"[a-z]\w*(?:\.[a-z]\w*)*", listed)) & set(schema_fields(SPEC))
    making = {*fields_of(ChangeClass.RESTART), "state.partitions"}
    assert {each for each in CHANGE_CLASSES if any(f"{each}.".startswith(f"{name}.") for name in named)} == making, (
        "the description of spec.upgrade in crds/streamingapps.tidegate.dev.yaml names the fields whose class is "
        "Restart in api/change_classes.py, and state.partitions"
    )
