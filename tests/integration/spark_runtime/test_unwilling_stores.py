"""An S3 server that throttles, or whose session token has expired, before and during a run: named, survived, gone on.

A real S3 server and real clients; a server before it says what AWS says then.
"""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidegate_spark.contract.protocol import ACCESS_KEY, EXIT_DEPENDENCY, SECRET_KEY, Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.storage import readiness
from tidegate_spark.storage.s3_client import FaultError
from tidegate_testing.driver_process import ObjectStore, driver_config
from tidegate_testing.store_front import Request, Rule, StoreFront
from tidegate_testing.waiting import wait_for

from .conftest import ACCESS, SECRET, StartDriver

IMPATIENT_S3A = {
    "spark.hadoop.fs.s3a.attempts.maximum": "1",
    "spark.hadoop.fs.s3a.retry.limit": "1",
    "spark.hadoop.fs.s3a.retry.throttle.limit": "1",
}
SLOW_DOWN, EXPIRED = (503, "SlowDown"), (400, "ExpiredToken")


@pytest.fixture
def front(object_store: ObjectStore) -> Iterator[StoreFront]:
    """What the driver takes for the S3 server."""
    with StoreFront(object_store.endpoint) as store_front:
        yield store_front


@pytest.fixture
def credentials(tmp_path: Path) -> Path:
    """The folder of the mounted Secret, with the right keys."""
    (tmp_path / ACCESS_KEY).write_text(ACCESS)
    (tmp_path / SECRET_KEY).write_text(SECRET)
    return tmp_path


def behind(front: StoreFront, place: Storage, app: str) -> Storage:
    return dataclasses.replace(place, uri=place.uri.rpartition("/")[0] + f"/{app}", endpoint=front.endpoint)


def with_a_body(request: Request) -> bool:
    """Pick what is answered with a body: to a HEAD no store can say why."""
    return request.method != "HEAD"


def put_of_a_batch(request: Request) -> bool:
    """Pick what Spark writes before a batch."""
    return request.method == "PUT" and "/main/offsets/" in request.key


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (SLOW_DOWN, (Reason.STORAGE_THROTTLED, "SlowDown (HTTP 503)")),
        ((429, "TooManyRequests"), (Reason.STORAGE_THROTTLED, "HTTP 429")),
        (EXPIRED, (Reason.CREDENTIALS_EXPIRED, "no longer accepts the session token")),
    ],
    ids=["SlowDown", "429", "ExpiredToken"],
)
def test_a_driver_that_finds_such_a_store_says_which_it_is(
    front: StoreFront, place: Storage, credentials: Path, answer: tuple[int, str], said: tuple[Reason, str]
) -> None:
    config = driver_config("app", "local:///main.py", behind(front, place, "app"))
    refusing = front.add(Rule(with_a_body, answer=answer))
    with pytest.raises(FaultError) as caught:
        readiness.check_storage(config, str(credentials))
    assert caught.value.fault.reason is said[0]
    assert said[1] in caught.value.fault.message
    assert refusing.hits >= 1
    front.clear()
    readiness.check_storage(config, str(credentials))


@pytest.mark.long  # tests/unit/runtime/process/test_pure_parts.py has what is made of the exceptions
@pytest.mark.parametrize(
    ("answer", "reason"),
    [(SLOW_DOWN, Reason.STORAGE_THROTTLED), (EXPIRED, Reason.CREDENTIALS_EXPIRED)],
    ids=["SlowDown", "ExpiredToken"],
)
def test_a_run_that_such_a_store_ends_says_which_it_is_and_goes_on_where_it_was(
    front: StoreFront, start_driver: StartDriver, place: Storage, answer: tuple[int, str], reason: Reason
) -> None:
    app = answer[1].lower()
    storage = behind(front, place, app)
    driver = start_driver(app, "each_batch.py", storage=storage, spark_conf=IMPATIENT_S3A)
    driver.await_batch(1)
    refusing = front.add(Rule(put_of_a_batch, answer=answer))
    assert driver.exit_code() == EXIT_DEPENDENCY, driver.output[-3000:]
    assert refusing.hits >= 1
    assert driver.termination.reason is reason, driver.termination
    reached = driver.termination.batches["main"]
    front.clear()
    driver.start()
    driver.await_batch(reached + 2)


@pytest.mark.long
def test_a_store_that_throttles_for_a_moment_ends_nothing(
    front: StoreFront, start_driver: StartDriver, place: Storage
) -> None:
    driver = start_driver("patient", "each_batch.py", storage=behind(front, place, "patient"))
    driver.await_batch(1)
    throttling = front.add(Rule(put_of_a_batch, answer=SLOW_DOWN, times=3))
    wait_for("three answers", lambda: throttling.hits == 3, 300, 0.1)
    driver.await_batch(driver.batch() + 2)
    driver.must_run()
