"""What docs, chart and messages name is there: fields, values of the chart, reasons, exit codes. Reads files."""

import builtins
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from docs.former_names import without_former_names
from tidegate.app.metrics.lifecycle import RESUMED
from tidegate.app.rules.launch.plaintext_secrets import PLAINTEXT_SECRETS
from tidegate.app.rules.live.ignored_periods import PERIODS_IGNORED
from tidegate.app.rules.schedule import SCHEDULE_WITHOUT_TIMES
from tidegate_spark.contract.protocol import EXIT_CODES
from tidegate_spark.contract.reasons import Reason
from tidegate_testing import plain_yaml

ROOT = Path(__file__).parents[3]
CHART = ROOT / "charts" / "tidegate"
SCHEMAS = {
    crd["spec"]["names"]["kind"]: without_former_names(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    for crd in (plain_yaml.load(path.read_text()) for path in sorted((ROOT / "crds").glob("*.yaml")))
}
PAGES = (ROOT / "README.md", ROOT / "SECURITY.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/guide").glob("*.md"))
IN_MODULES = {ROOT / "docs" / "architecture.md"}
"""Pages whose names are those of modules."""
OF_CHART = (
    CHART / "values.yaml",
    CHART / "README.md",
    CHART / "templates" / "NOTES.txt",
    *sorted((CHART / "files" / "monitoring").iterdir()),
)
MESSAGES = (
    *(ROOT / "operator" / "tidegate").rglob("*messages.py"),
    *(ROOT / "spark_app" / "tidegate_spark").rglob("*messages.py"),
    *(ROOT / "spark_app" / "tidegate_spark" / "contract" / "reasons" / "areas").glob("*.py"),
)
OF_PODS = {"spec.containers", "spec.initContainers", "spec.nodeName", "spec.volumes"}
"""How paths of a pod begin."""
OF_OTHERS = {
    *("ContainerCreating", "CrashLoopBackOff", "FailedMount", "ImagePullBackOff"),
    *("ProcessPoolExecutor", "RunAsAny", "SparkConf", "SparkContext", "StreamingContext"),
}
"""Words of Kubernetes, OpenShift, Python and Spark."""
_PATH = re.compile(r"(?<![\w.])(?:spec|status)(?:\.[a-zA-Z]\w*(?:\[[^\]\s]*\])?)+")
_WORD = re.compile(r"`([A-Z][a-z]+(?:[A-Z][a-z]+)+)`")
_CODE = re.compile(r"```.*?```", re.DOTALL)


def is_field(schema: Mapping[str, Any], path: Iterable[str]) -> bool:
    """Return whether a schema has a field; what may have any field has it."""
    node: Any = schema
    for name in path:
        while "items" in node:
            node = node["items"]
        inner = node.get("properties", {}).get(name) or node.get("additionalProperties")
        if not inner:
            return bool(node.get("x-kubernetes-preserve-unknown-fields"))
        node = inner if isinstance(inner, dict) else {}
    return True


def no_fields(text: str) -> set[str]:
    """Return the paths of a text that no kind has."""
    found = {re.sub(r"\[[^\]]*\]", "", path) for path in _PATH.findall(text)}
    ours = (path for path in found if ".".join(path.split(".")[:2]) not in OF_PODS)
    return {path for path in ours if not any(is_field(schema, path.split(".")) for schema in SCHEMAS.values())}


def words_of_schemas(node: Any) -> Iterator[str]:
    """Yield the words that a field may have."""
    if isinstance(node, dict):
        yield from (str(word) for word in node.get("enum", ()))
        for inner in node.values():
            yield from words_of_schemas(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from words_of_schemas(inner)


def no_reasons(text: str, known: set[str]) -> set[str]:
    """Return the words of a page that have a reason's form, and are none, nor anything else that is known."""
    found = set(_WORD.findall(_CODE.sub("", text)))
    return {word for word in found - known if not hasattr(builtins, word)}


@pytest.fixture(scope="module")
def known() -> set[str]:
    alerts = plain_yaml.load((CHART / "files" / "monitoring" / "alerts.yaml").read_text())
    return {
        *(reason.value for reason in Reason),
        *SCHEMAS,
        *words_of_schemas(SCHEMAS),
        *(rule["alert"] for group in alerts["groups"] for rule in group["rules"]),
        *(PLAINTEXT_SECRETS, PERIODS_IGNORED, SCHEDULE_WITHOUT_TIMES),
        *OF_OTHERS,
    }


@pytest.mark.parametrize("path", [*sorted(set(PAGES) - IN_MODULES), *OF_CHART, *sorted(MESSAGES)], ids=lambda p: p.name)
def test_a_field_that_is_named_is_one(path: Path) -> None:
    assert no_fields(path.read_text()) == set(), (
        f"{path.relative_to(ROOT)} names these fields, which no CRD in crds/ has: correct their paths"
    )


def test_a_planted_field_that_is_none_is_found() -> None:
    text = 'spec.control.retention, spec.control.retentionSeconds, status.conditions[?(@.type=="Ready")].reason'
    assert no_fields(f"{text} spec.sparkConf.any spec.driver.podTemplate.spec.hostNetwork") == {
        "spec.control.retention"
    }


def test_what_is_set_in_the_chart_is_a_value_of_it() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    given = {name for page in PAGES for name in re.findall(r"--set '?([\w.]+)=", page.read_text())}
    assert len(given) > 5, "the pattern does find them"
    wrong = {name for name in given if not is_field(schema, name.split("."))}
    assert wrong == {"watchNamespace"}, (
        "a page sets these by --set, and charts/tidegate/values.schema.json "
        "has no such value: correct them (watchNamespace is the example of one that is misspelt)"
    )


def test_what_the_tables_of_values_name_is_one_with_that_default() -> None:
    values = plain_yaml.load((CHART / "values.yaml").read_text())
    section = (ROOT / "docs" / "install.md").read_text().partition("## Values\n")[2].partition("### All namespaces")[0]
    compared = 0
    for names, defaults in re.findall(r"^\| (`[a-z].*?) \| (.*?) \| ", section, re.MULTILINE):
        found = [value_of(values, path) for path in whole_names(names)]
        given = re.findall(r"`([^`]*)`", defaults) or re.findall(r"^\d+$", defaults)
        if len(given) == len(found):
            assert [plain_yaml.load(one) for one in given] == found, (
                f"in docs/install.md, give {names} the defaults of charts/tidegate/values.yaml"
            )
            compared += 1
    assert compared > 10, "the pattern does find them"


def whole_names(cell: str) -> Iterator[str]:
    """Yield the values that a cell names; a name with a dot in front is a neighbour of the one before."""
    beside = ""
    for name in re.findall(r"`([\w.]+)`", cell):
        beside = beside if name.startswith(".") else name.rpartition(".")[0]
        yield f"{beside}{name}" if name.startswith(".") else name


def value_of(values: Any, path: str) -> Any:
    for name in path.split("."):
        assert name in values, path
        values = values[name]
    return values


@pytest.mark.parametrize(
    "page",
    [
        *sorted((ROOT / "docs" / "guide").glob("*.md")),
        *(ROOT / "docs" / f"{name}.md" for name in ("alerts", "autoscaling", "gitops", "install", "recipes")),
        *(ROOT / "docs" / f"{name}.md" for name in ("look-inside", "runtime", "security", "tour", "versions")),
    ],
    ids=lambda page: page.name,
)
def test_a_word_with_the_form_of_a_reason_is_one_or_known_otherwise(page: Path, known: set[str]) -> None:
    assert no_reasons(page.read_text(), known) == set(), (
        f"{page.relative_to(ROOT)} has these words in backquotes, which are no reasons: correct them, "
        "or, if they are words of others, add them to OF_OTHERS here"
    )


def test_a_planted_reason_that_is_none_is_found(known: set[str]) -> None:
    assert no_reasons("`StorageMissing`, `StorageEmpty` and `AttributeError`", known) == {"StorageMissing"}


def test_the_reasons_in_alerts_are_reasons() -> None:
    text = (CHART / "files" / "monitoring" / "alerts.yaml").read_text()
    patterns = re.findall(r'reason(?:=|=~|!~)"([^"]+)"', text)
    assert len(patterns) > 5, "the pattern does find them"
    for pattern in patterns:
        matched = [word for word in (*Reason, RESUMED) if re.fullmatch(pattern, word)]
        assert len(matched) == pattern.count("|") + 1, (pattern, matched)


def test_the_table_of_ends_has_every_reason_with_its_exit_code() -> None:
    page = (ROOT / "docs" / "runtime.md").read_text()
    table = page.partition("## How it ends")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| .+ \| ([A-Z][\w, ]+) \| (\d+) \|$", table, re.MULTILINE)
    documented = {(reason, int(code)) for reasons, code in rows for reason in reasons.split(", ")}
    assert {(reason.value, code) for reason, code in EXIT_CODES.items()} == documented, (
        "the table 'How it ends' in docs/runtime.md has each reason of contract/protocol.EXIT_CODES with its exit code"
    )
