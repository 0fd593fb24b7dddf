"""A real S3 server on 127.0.0.1 for the whole run, a bucket for each test, and drivers that end with their test."""

import contextlib
import dataclasses
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from devcluster import tools
from devcluster.control import free_port
from tidegate_spark.contract.protocol import (
    CONFIG_VARIABLE,
    LOG_PREFIX,
    DriverConfig,
    Storage,
    application_uri,
    from_json,
    to_json,
)
from tidegate_spark.contract.snapshot_protocol import ORDERS_VARIABLE, SnapshotOrders, SnapshotReport, SnapshotReports
from tidegate_spark.storage.s3_client import Credentials
from tidegate_testing import class_archive
from tidegate_testing.driver_process import SOURCES, TOKEN, DriverProcess, ObjectStore, driver_config
from tidegate_testing.waiting import wait_for
from tidegate_testing.warm_jvms import WarmJvms

SCRIPTS = Path(__file__).parent / "scripts"
ACCESS, SECRET = "tests-access", "tests-secret-value"
QUICK_SPARK = {"spark.ui.enabled": "false"}

StartDriver = Callable[..., DriverProcess]


@pytest.fixture(scope="session")
def object_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """versitygw, empty."""
    with _serving(tmp_path_factory.mktemp("s3"), ACCESS, SECRET) as store:
        yield store


@pytest.fixture
def other_store(tmp_path: Path) -> Iterator[ObjectStore]:
    """Another one, with other keys."""
    with _serving(tmp_path / "other-s3", "other-access", "other-secret-value") as store:
        yield store


@contextlib.contextmanager
def _serving(folder: Path, access: str, secret: str) -> Iterator[ObjectStore]:
    (folder / "data").mkdir(parents=True)
    (folder / "metadata").mkdir()
    port = free_port()
    command = [str(tools.program("versitygw")), "--port", f"127.0.0.1:{port}", "--health", "/health", "--quiet"]
    command += ["--sidecar", str(folder / "metadata"), str(folder / "data")]
    keys = {"ROOT_ACCESS_KEY_ID": access, "ROOT_SECRET_ACCESS_KEY": secret}
    server = subprocess.Popen(command, env=keys, stdout=subprocess.DEVNULL)
    store = ObjectStore(f"http://127.0.0.1:{port}", access, secret)
    try:
        wait_for("the S3 server", lambda: _answers(store), 180, 0.1)
        yield store
    finally:
        server.kill()
        server.wait(60)


def _answers(store: ObjectStore) -> bool:
    try:
        store.client.list_buckets()
    except EndpointConnectionError:
        return False
    return True


@pytest.fixture
def bucket(object_store: ObjectStore, request: pytest.FixtureRequest) -> str:
    """A fresh bucket."""
    return _bucket_of(request.node.nodeid, object_store)


def _bucket_of(whose: str, store: ObjectStore) -> str:
    name = "b" + hashlib.sha256(whose.encode()).hexdigest()[:16]
    store.client.create_bucket(Bucket=name)
    return name


def driver_logs(store: ObjectStore, place: Storage) -> list[str]:
    """Return what the application's driver processes left as their logs, the earliest first."""
    keys = store.keys(place.bucket, place.key(LOG_PREFIX) + "/")
    return [store.text(place.bucket, key) for key in sorted(keys) if key.endswith("/driver.log")]


@pytest.fixture(scope="session")
def jars() -> Path:
    """S3A and the Kafka connector, as the images carry them, and Spark's own, for the archive of classes."""
    return class_archive.jars()


@pytest.fixture
def place(object_store: ObjectStore, bucket: str) -> Storage:
    """The storage of application ``app`` in the test's bucket."""
    return _place_in(bucket, object_store)


def _place_in(bucket: str, store: ObjectStore) -> Storage:
    return Storage(application_uri(f"s3://{bucket}/apps", "tests", "app"), store.endpoint, "us-east-1", True)


@pytest.fixture(scope="session")
def warm_jvms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmJvms]:
    """What drivers have their sessions in, unless they ask for JVMs of their own."""
    yield from start_warm_jvms(tmp_path_factory)


def start_warm_jvms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmJvms]:
    """Yield what lends JVMs to drivers; all of them are ended afterwards."""
    keys = Credentials(ACCESS, SECRET).variables()
    variables = {**keys, "SPARK_CONF_DIR": str(class_archive.conf()), "PYTHONPATH": str(SOURCES)}
    made = WarmJvms(lambda: tmp_path_factory.mktemp("jvm"), variables)
    yield made
    made.close()


@pytest.fixture
def start_process(place: Storage, tmp_path: Path) -> Iterator[StartDriver]:
    """Start a driver that does not come as far as Spark; it is killed after the test."""
    started: list[DriverProcess] = []
    try:
        yield _starter(place, tmp_path, tmp_path, started, None)
    finally:
        for driver in started:
            driver.kill()


@pytest.fixture
def start_driver(place: Storage, jars: Path, tmp_path: Path, warm_jvms: WarmJvms) -> Iterator[StartDriver]:
    """Start a driver: ``start_driver(app, script, **fields of DriverConfig)``; it is gone after the test."""
    started: list[DriverProcess] = []
    try:
        yield _starter(place, jars, tmp_path, started, warm_jvms)
    finally:
        for driver in started:
            driver.release()


@pytest.fixture(scope="module")
def start_shared(
    object_store: ObjectStore,
    jars: Path,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    warm_jvms: WarmJvms,
) -> Iterator[StartDriver]:
    """Start a driver as ``start_driver`` does, in a bucket of the file's tests; it is gone after the last of them."""
    place = _place_in(_bucket_of(request.node.nodeid, object_store), object_store)
    started: list[DriverProcess] = []
    try:
        yield _starter(place, jars, tmp_path_factory.mktemp("shared"), started, warm_jvms)
    finally:
        for driver in started:
            driver.release()


def _starter(
    place: Storage, jars: Path, folder: Path, started: list[DriverProcess], jvms: WarmJvms | None
) -> StartDriver:
    def start(
        app: str,
        script: str,
        *,
        own_jvm: bool = False,
        secret: str = SECRET,
        class_path: Path = jars,
        python: tuple[str, ...] = (sys.executable,),
        token: str = TOKEN,
        operator: str = "",
        variables: Mapping[str, str] = MappingProxyType({}),
        **fields: Any,
    ) -> DriverProcess:
        own_place = dataclasses.replace(place, uri=application_uri(f"s3://{place.bucket}/apps", "tests", app))
        main = script if ":" in script else f"local://{SCRIPTS / script}"
        spark_conf = {**QUICK_SPARK, **fields.pop("spark_conf", {})}
        config = driver_config(app, main, fields.pop("storage", own_place), spark_conf=spark_conf, **fields)
        own_folder = folder / f"{app}-{len(started)}"
        driver = DriverProcess(config, own_folder, class_path, python=python, token=token, operator=operator)
        if not own_jvm:
            driver.jvms = jvms
        if secret:
            driver.put_credentials(ACCESS, secret)
        started.append(driver)
        return driver.start(**variables)

    return start


def run_pod(
    config: DriverConfig, orders: SnapshotOrders, folder: Path, secret: str = SECRET
) -> tuple[int, dict[str, SnapshotReport]]:
    """Run a snapshot pod to its end; return its exit code and its termination message."""
    folder.mkdir()
    (folder / "AWS_ACCESS_KEY_ID").write_text(ACCESS)
    (folder / "AWS_SECRET_ACCESS_KEY").write_text(secret)
    variables = {
        **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
        "PYTHONPATH": str(SOURCES),
        "TIDEGATE_BIND_ADDRESS": "127.0.0.1",
        "TIDEGATE_STATUS_PORT": str(free_port()),
        "TIDEGATE_CREDENTIALS_DIRECTORY": str(folder),
        "TIDEGATE_TERMINATION_LOG": str(folder / "termination"),
        CONFIG_VARIABLE: to_json(config),
        ORDERS_VARIABLE: to_json(orders),
    }
    command = [sys.executable, "-m", "tidegate_spark.snapshot_pod"]
    code = subprocess.run(command, env=variables, timeout=600, check=False).returncode
    reports = from_json(SnapshotReports, (folder / "termination").read_text()).snapshots
    return code, {report.id: report for report in reports}
