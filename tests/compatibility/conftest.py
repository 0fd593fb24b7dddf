"""Drivers as those of tests/integration/spark_runtime, with a script of a pattern each; inputs lie in the bucket."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from devcluster import kafka
from devcluster.site import LocalSite
from tests.compatibility.inputs import files_of, put_files, records_of
from tests.compatibility.patterns import Pattern
from tests.integration.spark_runtime.conftest import (
    StartDriver,
    bucket,
    jars,
    object_store,
    place,
    start_driver,
    start_warm_jvms,
)
from tidegate_testing.apps import QUICK_JAVA
from tidegate_testing.driver_process import DriverProcess, ObjectStore
from tidegate_testing.line_server import serving_lines
from tidegate_testing.warm_jvms import WarmJvms

__all__ = ["bucket", "jars", "object_store", "place", "start_driver"]

HERE = Path(__file__).parent
HANGS_AFTER = 1800
"""Seconds for a test with all that it waits for, each wait as long as it may be; more than that, and it hangs."""
os.environ.setdefault("JAVA_TOOL_OPTIONS", QUICK_JAVA)

Run = Callable[..., DriverProcess]
"""``run(pattern, epoch, version)`` starts its driver."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test time to wait."""
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(HANGS_AFTER))


@pytest.fixture(scope="package")
def warm_jvms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmJvms]:
    """What drivers have their sessions in, unless their pattern needs JVMs of its own; gone after these tests."""
    yield from start_warm_jvms(tmp_path_factory)


@pytest.fixture(scope="session")
def port() -> Iterator[int]:
    """The port of a server of lines of words."""
    with serving_lines(lambda number: f"tide gate {number % 5}") as found:
        yield found


@pytest.fixture(scope="session")
def brokers() -> Iterator[str]:
    """A Kafka broker."""
    with LocalSite() as site:
        kafka.up(site)
        yield site.kafka_host


@pytest.fixture
def run(
    request: pytest.FixtureRequest, start_driver: StartDriver, object_store: ObjectStore, bucket: str, tmp_path: Path
) -> Iterator[Run]:
    """Start a driver with a pattern's script."""
    values: dict[str, str] = {}
    with ExitStack() as feeds:

        def start(pattern: Pattern, epoch: int = 1, version: int = 1) -> DriverProcess:
            if not values:
                values.update(fill_in(pattern, request, object_store, bucket, feeds))
                values["folder"] = str(tmp_path / "folder")
                feeds.enter_context(files_of(tmp_path / "folder" / "in"))
            return start_driver(
                "app",
                f"local://{pattern.path}",
                args=pattern.arguments(values, version=version),
                spark_conf=pattern.settings(values),
                own_jvm=pattern.own_jvm,
                epoch=epoch,
                variables=pattern.variables(values),
            )

        yield start


def fill_in(
    pattern: Pattern, request: pytest.FixtureRequest, store: ObjectStore, bucket: str, feeds: ExitStack
) -> dict[str, str]:
    """Have there what the pattern asks for; return what its arguments have in the places for it."""
    asked = " ".join((*pattern.args, *pattern.next_args))
    values = {"input": f"s3a://{bucket}/input", "output": f"s3a://{bucket}/output"}
    if "{input}" in asked:
        put_files(store.client, bucket, "input")
    if "{port}" in asked:
        values["port"] = str(request.getfixturevalue("port"))
    if "{brokers}" in asked:
        values["brokers"], values["topic"] = request.getfixturevalue("brokers"), f"words-of-{bucket}"
        feeds.enter_context(records_of(values["brokers"], values["topic"]))
    return values
