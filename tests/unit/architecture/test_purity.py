"""A module that says of itself that it is pure does no I/O, nor does anything that it imports. Reads both packages."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = {"tidegate": "operator", "tidegate_spark": "spark_app"}
OUTSIDE = [
    "aiohttp",
    "asyncio",
    "boto3",
    "botocore",
    "concurrent",
    "kopf",
    "kubernetes",
    "logging",
    "multiprocessing",
    "pika",
    "prometheus_client",
    "py4j",
    "pyspark",
    "random",
    "secrets",
    "select",
    "shutil",
    "signal",
    "socket",
    "ssl",
    "structlog",
    "subprocess",
    "tempfile",
    "tenacity",
    "time",
]
"""What reaches beyond the process, or gives another answer each time."""
SPARK = ("boto3", "py4j", "pyspark")
"""What an inspection's path, answer and command line do without: a driver loads it when somebody asks for state."""
_FEWEST = 50


_ASKS = re.compile("Talks to Spark|Does I/O")


def says_pure(text: str) -> bool:
    """Return whether the first paragraph of a module's docstring has the word."""
    return re.search(r"\bPure\b", (ast.get_docstring(ast.parse(text)) or "").split("\n\n")[0]) is not None


def pure_modules() -> Iterator[str]:
    for package, folder in PACKAGES.items():
        for path in (ROOT / folder / package).rglob("*.py"):
            if says_pure(path.read_text()):
                yield ".".join(path.relative_to(ROOT / folder).with_suffix("").parts).removesuffix(".__init__")


def of_inspections(*, with_spark: bool) -> list[str]:
    """Return the modules of inspections whose docstring says that they ask Spark, or those that do not say so."""
    folder = ROOT / "spark_app" / "tidegate_spark" / "inspect"
    asks = {path.stem: _ASKS.search(path.read_text().partition("\n")[0]) for path in folder.glob("[!_]*.py")}
    return [f"tidegate_spark.inspect.{name}" for name, found in sorted(asks.items()) if bool(found) is with_spark]


def ways_out(graph: grimp.ImportGraph, module: str, outside: Iterable[str] = OUTSIDE) -> list[str]:
    """Return the shortest way of imports from a module to each of what is outside, where there is one."""
    found = (graph.find_shortest_chain(module, name) for name in outside if name in graph.modules)
    return [" -> ".join(chain) for chain in found if chain is not None]


@pytest.fixture
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, include_external_packages=True, cache_dir=None)


def test_what_calls_itself_pure_reaches_nothing_outside(graph: grimp.ImportGraph) -> None:
    modules = list(pure_modules())
    assert [way for module in modules for way in ways_out(graph, module)] == [], (
        "each way leads from a module that says `Pure` or `No I/O` to what does I/O: give it that as a value or a port"
    )
    assert len(modules) > _FEWEST


def test_inspections_need_spark_only_where_they_say_that_they_ask_it(graph: grimp.ImportGraph) -> None:
    outside = (*SPARK, *of_inspections(with_spark=True))
    without = [*of_inspections(with_spark=False), "tidegate_spark.inside.__main__"]
    assert len(without) > len(outside)
    assert [way for module in without for way in ways_out(graph, module, outside)] == [], (
        "each way leads from a module of tidegate_spark.inspect to Spark: import it in one whose docstring says "
        "`Talks to Spark`"
    )


def test_spark_in_what_an_answer_imports_is_found(graph: grimp.ImportGraph) -> None:
    graph.add_import(importer="tidegate_spark.monitoring.lag", imported="py4j")
    found = [way for module in of_inspections(with_spark=False) for way in ways_out(graph, module, SPARK)]
    assert "tidegate_spark.inspect.last_progress -> tidegate_spark.monitoring.lag -> py4j" in found


def test_a_planted_way_out_two_modules_away_is_found(graph: grimp.ImportGraph) -> None:
    graph.add_module("tidegate_spark.news")
    graph.add_import(importer="tidegate_spark.control_log.reducer", imported="tidegate_spark.news")
    graph.add_import(importer="tidegate_spark.news", imported="boto3")
    assert ways_out(graph, "tidegate_spark.control_log.reducer") == [
        "tidegate_spark.control_log.reducer -> tidegate_spark.news -> boto3"
    ]


@pytest.mark.parametrize(
    ("text", "pure"),
    [
        ('"""What follows. Pure."""', True),
        ('"""What follows. Pure, but for a cache.\n\nMore."""', True),
        ('"""What follows.\n\nPure in part."""', False),
        ('"""What follows. No I/O of its own."""', False),
    ],
)
def test_a_module_is_pure_by_its_first_paragraph(text: str, pure: bool) -> None:
    assert says_pure(text) is pure
