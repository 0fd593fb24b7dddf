"""What the guide says about fields, reasons and settings is what the code does. Reads the docs."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from tidegate.decide.control.waiting import OFFERED, QUEUED
from tidegate.model.change_classes import CHANGE_CLASSES, ChangeClass, fields_of
from tidegate.model.control_message import CONTROL_KIND, ControlMessageSpec
from tidegate.model.stream_snapshot import SNAPSHOT_KIND, StreamSnapshotSpec
from tidegate.model.streaming_app import KIND, Phase, StreamingAppSpec
from tidegate.spark.settings import OWNED_KEYS
from tidegate_spark.control_protocol import BUILT_IN_TYPES
from tidegate_spark.protocol import Reason
from tidegate_spark.snapshot_protocol import SnapshotReason

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "guide.md").read_text()
BLOCKS = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)]
EXAMPLES = [block for block in BLOCKS if block.get("kind", KIND) == KIND]
MESSAGES = [block for block in BLOCKS if block.get("kind") == CONTROL_KIND]
SNAPSHOTS = [block for block in BLOCKS if block.get("kind") == SNAPSHOT_KIND]
REQUIRED = {"application": {"image": "x", "main": "x"}, "storage": {"uri": "s3://x"}}


def section(title: str) -> str:
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", GUIDE, re.DOTALL | re.MULTILINE)
    assert found is not None, title
    return found[1]


def first_column(text: str) -> list[str]:
    rows = re.findall(r"^\| (.+?) \|", text, re.MULTILINE)
    return [name for row in rows[1:] for name in re.findall(r"`([^`]+)`", row) or [row]]


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_is_a_spec_the_operator_reads(example: dict[str, dict[str, dict[str, object]]]) -> None:
    given = example["spec"]
    complete = {**REQUIRED, **{k: {**REQUIRED.get(k, {}), **v} if isinstance(v, dict) else v for k, v in given.items()}}
    read = msgspec.to_builtins(msgspec.convert(complete, StreamingAppSpec))
    for group, fields in given.items():
        assert fields == read[group] if not isinstance(fields, dict) else fields.keys() <= read[group].keys(), group


@pytest.mark.parametrize("example", SNAPSHOTS)
def test_every_example_of_a_snapshot_is_one_the_operator_reads(example: dict[str, Any]) -> None:
    read = msgspec.to_builtins(msgspec.convert(example["spec"], StreamSnapshotSpec))
    assert example["spec"].keys() <= read.keys()


@pytest.mark.parametrize("example", MESSAGES)
def test_every_example_of_a_message_is_one_the_operator_reads(example: dict[str, Any]) -> None:
    read = msgspec.to_builtins(msgspec.convert(example["spec"], ControlMessageSpec))
    assert example["spec"] == {name: value for name, value in read.items() if name in example["spec"]}


def test_every_reason_of_a_message_is_explained_and_no_other_one() -> None:
    folder = ROOT / "operator" / "tidegate" / "decide" / "control"
    source = "\n".join(path.read_text() for path in sorted(folder.rglob("*.py")))
    said = r'(?:Health\.\w+,|_waiting\(\s*s,|_failed\(|_going_on\()\s*"([A-Z][A-Za-z]+)"'
    runtime = ROOT / "spark_app" / "tidegate_spark" / "control"
    refusing = "\n".join((runtime / name).read_text() for name in ("checking.py", "models.py"))
    refused = set(re.findall(r'(?:RejectedError\(|rejected\(entry,)\s*"([A-Z][A-Za-z]+)"', refusing))
    explained = set(first_column(section("What happens to a message")))
    assert set(re.findall(said, source)) | refused | {OFFERED, QUEUED, "InvalidSpec"} == explained


def test_every_type_that_all_applications_understand_is_named() -> None:
    assert [kind for kind in BUILT_IN_TYPES if f"`{kind}`" not in section("Control messages")] == []


def test_every_reason_of_the_runtime_is_explained() -> None:
    explained = first_column(section("What each reason means"))
    assert {reason.value for reason in Reason} - set(explained) == set()


def test_every_reason_the_operator_decides_is_explained() -> None:
    """Reasons are CamelCase literals in the tables of rules; the guide names each of them."""
    folders = [ROOT / "operator" / "tidegate" / name for name in ("decide", "act")]
    source = "\n".join(path.read_text() for folder in folders for path in sorted(folder.rglob("*.py")))
    decided = set(re.findall(r'(?:Health\.\w+,|Problem\()\s*"([A-Z][A-Za-z]+)"', source))
    decided |= set(re.findall(r'self\._refuse(?:_launch)?\([^")]+"([A-Z][A-Za-z]+)"', source))
    # The pattern does find them.
    assert decided >= {
        "StorageConflict",
        "DriverNotGone",
        "InvalidSpec",
        "OutOfMemory",
        "LaunchRefused",
        "PodNameTaken",
        "SecretNameTaken",
        "AccessNameTaken",
    }
    # Nobody ever sees these: they are decided when the resource goes.
    assert {reason for reason in decided - {"Released", "Expired"} if f"`{reason}`" not in GUIDE} == set()


def test_every_event_that_is_no_condition_is_explained() -> None:
    decided = (ROOT / "operator" / "tidegate").rglob("*.py")
    noticed = (ROOT / "spark_app" / "tidegate_spark").rglob("*.py")
    told = {name for path in decided for name in re.findall(r'PublishEvent\(\s*"(\w+)"', path.read_text())}
    told |= {name for path in noticed for name in re.findall(r'\.notice\(\s*"(\w+)"', path.read_text())}
    # The pattern does find them.
    assert told >= {"GracePeriodExceeded", "StorageKept", "CheckpointRedirected"}
    assert told - set(first_column(section("Events"))) == set()


def test_every_reason_of_a_snapshot_that_waits_or_failed_is_explained() -> None:
    explained = first_column(section("What happens to a snapshot"))
    assert {reason.value for reason in SnapshotReason if reason.value} - set(explained) == set()


def test_every_phase_is_explained() -> None:
    assert first_column(section("Phases")) == [phase.value for phase in Phase]


def test_the_table_of_edits_is_the_table_of_change_classes() -> None:
    rows = re.findall(r"^\| (`.+`) \| (.+) \|$", section("Change it"), re.MULTILINE)
    documented = {tuple(sorted(re.findall(r"`([^`]+)`", fields))) for fields, _ in rows}
    assert documented == {fields_of(change_class) for change_class in ChangeClass}
    assert sum(len(fields) for fields in documented) == len(CHANGE_CLASSES)


def test_the_table_of_owned_settings_is_tidegates() -> None:
    assert sorted(first_column(section("sparkConf"))) == sorted(OWNED_KEYS)


@pytest.mark.parametrize("page", ["guide.md", "install.md"])
def test_links_inside_a_page_lead_somewhere(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    titles = {re.sub(r"[^\w -]", "", t).strip().lower().replace(" ", "-") for t in re.findall(r"^#+ (.+)$", text, re.M)}
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= titles
