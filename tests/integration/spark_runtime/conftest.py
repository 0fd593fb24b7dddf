"""A real S3 server on 127.0.0.1 for the whole run, a bucket for each test, and drivers that end with their test."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from devcluster import tools
from tidegate_spark.protocol import Storage, application_uri
from tidegate_testing import spark_jars
from tidegate_testing.driver_process import DriverProcess, ObjectStore, driver_config, free_port
from tidegate_testing.waiting import wait_for

SCRIPTS = Path(__file__).parent / "scripts"
ACCESS, SECRET = "tests-access", "tests-secret-value"

StartDriver = Callable[..., DriverProcess]


@pytest.fixture(scope="session")
def object_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """versitygw, empty."""
    folder = tmp_path_factory.mktemp("s3")
    (folder / "data").mkdir()
    (folder / "metadata").mkdir()
    port = free_port()
    command = [str(tools.program("versitygw")), "--port", f"127.0.0.1:{port}", "--health", "/health", "--quiet"]
    command += ["posix", "--sidecar", str(folder / "metadata"), str(folder / "data")]
    server = subprocess.Popen(
        command, env={"ROOT_ACCESS_KEY_ID": ACCESS, "ROOT_SECRET_ACCESS_KEY": SECRET}, stdout=subprocess.DEVNULL
    )
    store = ObjectStore(f"http://127.0.0.1:{port}", ACCESS, SECRET)
    try:
        wait_for("the S3 server", lambda: _answers(store), 30, 0.1)
        yield store
    finally:
        server.kill()
        server.wait(10)


def _answers(store: ObjectStore) -> bool:
    try:
        store.client.list_buckets()
    except EndpointConnectionError:
        return False
    return True


@pytest.fixture
def bucket(object_store: ObjectStore, request: pytest.FixtureRequest) -> str:
    """A fresh bucket."""
    name = "b" + format(abs(hash(request.node.nodeid)), "x")[:16]
    object_store.client.create_bucket(Bucket=name)
    return name


@pytest.fixture(scope="session")
def jars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """S3A and the Kafka connector, as the images carry them."""
    return spark_jars.merged(("s3a", "kafka"), tmp_path_factory.mktemp("jars"))


@pytest.fixture
def start_driver(object_store: ObjectStore, bucket: str, jars: Path, tmp_path: Path) -> Iterator[StartDriver]:
    """Start a driver: ``start_driver(app, script, **fields of DriverConfig)``; it is killed after the test."""
    started: list[DriverProcess] = []

    def start(app: str, script: str, *, secret: str = SECRET, class_path: Path = jars, **fields: Any) -> DriverProcess:
        place = Storage(application_uri(f"s3://{bucket}/apps", "tests", app), object_store.endpoint, "us-east-1", True)
        main = script if ":" in script else f"local://{SCRIPTS / script}"
        config = driver_config(app, main, fields.pop("storage", place), **fields)
        driver = DriverProcess(config, tmp_path / f"{app}-{len(started)}", class_path)
        if secret:
            driver.put_credentials(ACCESS, secret)
        started.append(driver)
        return driver.start()

    yield start
    for driver in started:
        driver.kill()
