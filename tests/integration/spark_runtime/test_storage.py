"""What the runtime makes of the storage it finds, against a real S3 server; no JVM is started."""

import dataclasses
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tidegate_spark.contract.protocol import (
    ACCESS_KEY,
    EXIT_CODES,
    EXIT_STOPPED,
    EXPECTS_BEGINNING,
    EXPECTS_STATE,
    OPENS_EMPTY,
    OPENS_NOTHING,
    PROTOCOL,
    SECRET_KEY,
    DriverConfig,
    DriverState,
    Fault,
    Storage,
)
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.process import logs
from tidegate_spark.snapshots.purge import purge
from tidegate_spark.storage import readiness, s3_client
from tidegate_spark.storage.claim.claimed import Known
from tidegate_spark.storage.claim.claiming import BehindError
from tidegate_spark.storage.s3_client import Credentials, FaultError
from tidegate_testing.driver_process import DriverProcess, ObjectStore, driver_config
from tidegate_testing.waiting import wait_for

from .conftest import ACCESS, SECRET, StartDriver, driver_logs

MAIN = "local:///main.py"


@pytest.fixture
def config(place: Storage) -> DriverConfig:
    return driver_config("app", MAIN, place)


@pytest.fixture
def credentials(tmp_path: Path) -> Path:
    """The folder of the mounted Secret, with the right keys."""
    folder = tmp_path / "credentials"
    put_credentials(folder, SECRET)
    return folder


def put_credentials(folder: Path, secret: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / ACCESS_KEY).write_text(ACCESS)
    (folder / SECRET_KEY).write_text(secret)


def fault_of_check(config: DriverConfig, credentials: Path) -> Fault:
    with pytest.raises(FaultError) as caught:
        readiness.check_storage(config, str(credentials))
    return caught.value.fault


def reported(driver: DriverProcess, reason: Reason) -> bool:
    report = driver.report()
    return report is not None and report.fault is not None and report.fault.reason is reason


def test_storage_is_claimed_for_the_application_and_nothing_else_is_left_there(
    object_store: ObjectStore, config: DriverConfig, credentials: Path
) -> None:
    readiness.check_storage(config, str(credentials))
    again = dataclasses.replace(config, epoch=4, lineage=2)
    readiness.check_storage(again, str(credentials))
    keys = [key for key in object_store.keys(config.storage.bucket, "") if not key.endswith("/")]
    assert keys == [config.storage.key("app.json")]
    claim = json.loads(object_store.text(config.storage.bucket, keys[0]))
    assert (claim["uid"], claim["epoch"], claim["lineage"]) == (config.uid, 4, 2)


def test_a_bucket_that_does_not_exist_is_named_with_its_field(config: DriverConfig, credentials: Path) -> None:
    absent = dataclasses.replace(config.storage, uri="s3://no-such-bucket/apps/tests/app")
    fault = fault_of_check(dataclasses.replace(config, storage=absent), credentials)
    assert fault.reason is Reason.BUCKET_NOT_FOUND
    assert "'no-such-bucket' (spec.storage.uri)" in fault.message


def test_an_endpoint_that_does_not_answer_is_named_with_its_field(config: DriverConfig, credentials: Path) -> None:
    with socket.socket() as mute:  # it has the port, and does not listen
        mute.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{mute.getsockname()[1]}"
        fault = fault_of_check(
            dataclasses.replace(config, storage=dataclasses.replace(config.storage, endpoint=endpoint)), credentials
        )
    assert fault.reason is Reason.STORAGE_UNAVAILABLE
    assert f"{endpoint} (spec.storage.endpoint)" in fault.message


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"uid": "another"}, Reason.STORAGE_OWNED), ({"epoch": 2}, Reason.FENCED)],
    ids=["another application", "a later epoch"],
)
def test_storage_of_another_application_or_of_a_later_epoch_is_not_touched(
    object_store: ObjectStore, config: DriverConfig, credentials: Path, change: dict[str, Any], reason: Reason
) -> None:
    readiness.check_storage(dataclasses.replace(config, **change), str(credentials))
    before = object_store.text(config.storage.bucket, config.storage.key("app.json"))
    fault = fault_of_check(config, credentials)
    assert fault.reason is reason
    assert config.storage.uri in fault.message
    assert object_store.text(config.storage.bucket, config.storage.key("app.json")) == before


def test_a_place_of_another_resource_is_taken_over_where_that_ended_and_only_by_one_that_adopts(
    object_store: ObjectStore, config: DriverConfig, credentials: Path
) -> None:
    readiness.check_storage(dataclasses.replace(config, epoch=9, lineage=2), str(credentials))
    restored = dataclasses.replace(config, uid="another", adopt=True, opening=OPENS_NOTHING)
    with pytest.raises(BehindError) as caught:
        readiness.check_storage(restored, str(credentials))
    assert caught.value.known == Known(9, 2, adopted_from=config.uid)
    readiness.check_storage(dataclasses.replace(restored, epoch=10, lineage=2), str(credentials))
    # Who lost it does not take it back, and lineages whose claim is lost are nobody's.
    back = dataclasses.replace(config, epoch=11, lineage=2, adopt=True)
    assert fault_of_check(back, credentials).reason is Reason.STORAGE_OWNED
    key, client = config.storage.key("app.json"), object_store.client
    client.put_object(Bucket=config.storage.bucket, Key=config.storage.key("lineages", "2", "main", "commits", "7"))
    client.delete_object(Bucket=config.storage.bucket, Key=key)
    assert fault_of_check(dataclasses.replace(config, epoch=11, lineage=2), credentials).reason is Reason.CLAIM_DAMAGED


def test_a_lineage_that_is_to_start_from_nothing_is_not_begun_where_there_is_something(
    object_store: ObjectStore, config: DriverConfig, credentials: Path
) -> None:
    readiness.check_storage(config, str(credentials))
    left = config.storage.key("lineages", "2", "main", "commits", "7")
    object_store.client.put_object(Bucket=config.storage.bucket, Key=left)
    stateless = dataclasses.replace(config, epoch=2, lineage=2, opening=OPENS_EMPTY)
    assert fault_of_check(stateless, credentials).reason is Reason.LINEAGE_NOT_EMPTY
    object_store.client.delete_object(Bucket=config.storage.bucket, Key=left)
    readiness.check_storage(stateless, str(credentials))


def test_an_application_that_has_run_claims_nothing_in_a_store_without_its_state_and_goes_on_where_that_is(
    object_store: ObjectStore, config: DriverConfig, credentials: Path
) -> None:
    client, place = object_store.client, config.storage
    readiness.check_storage(config, str(credentials))
    client.put_object(Bucket=place.bucket, Key=place.key("lineages", "1", "main", "commits", "7"))
    # Another store has the same bucket, and nothing in it; here it is another prefix.
    has_run = dataclasses.replace(config, epoch=2, expects=EXPECTS_STATE)
    elsewhere = dataclasses.replace(place, uri=f"{place.uri}-elsewhere")
    refused = fault_of_check(dataclasses.replace(has_run, storage=elsewhere), credentials)
    assert refused.reason is Reason.STORAGE_EMPTY
    assert client.list_objects_v2(Bucket=place.bucket, Prefix=elsewhere.prefix)["KeyCount"] == 0
    # A fork that lost its status asks, and claims nothing either.
    lost = dataclasses.replace(config, lineage=0, opening=OPENS_NOTHING, expects=EXPECTS_BEGINNING)
    assert fault_of_check(dataclasses.replace(lost, storage=elsewhere), credentials).reason is Reason.STORAGE_EMPTY
    client.put_object(Bucket=place.bucket, Key=place.key("lineages", "1.json"), Body=b'{"snapshot": "nightly"}')
    with pytest.raises(BehindError) as caught:
        readiness.check_storage(lost, str(credentials))
    assert (caught.value.known, caught.value.known.found) == (Known(1, 1), True)
    readiness.check_storage(has_run, str(credentials))


@pytest.mark.parametrize("header", ["If-None-Match", "If-Match"])
def test_a_store_that_ignores_a_condition_is_refused(
    object_store: ObjectStore, config: DriverConfig, header: str
) -> None:
    client = object_store.client

    def drop_condition(request: Any, **_: Any) -> None:
        # What an older store does with a header it does not know.
        del request.headers[header]  # no error if it is not there

    client.meta.events.register("before-sign.s3.PutObject", drop_condition, unique_id=header)
    try:
        with pytest.raises(FaultError) as caught:
            readiness.probe_conditional_writes(client, config)
    finally:
        client.meta.events.unregister("before-sign.s3.PutObject", unique_id=header)
    assert caught.value.fault.reason is Reason.STORAGE_UNSUITABLE
    assert f"ignores {header} " in caught.value.fault.message


def test_missing_and_rejected_credentials_are_waited_for_and_read_again(config: DriverConfig, tmp_path: Path) -> None:
    folder = tmp_path / "credentials"
    seen: list[Reason | None] = []

    def correct_what_is_reported(fault: Fault | None) -> None:
        seen.append(fault.reason if fault else None)
        put_credentials(folder, "wrong" if seen == [Reason.CREDENTIALS_MISSING] else SECRET)

    found = readiness.wait_for_storage(config, str(folder), threading.Event(), correct_what_is_reported)
    assert found == Credentials(ACCESS, SECRET)
    assert seen == [Reason.CREDENTIALS_MISSING, Reason.CREDENTIALS_REJECTED, None]


def test_a_driver_that_waits_for_storage_says_so_lives_and_can_be_stopped(
    start_process: StartDriver, tmp_path: Path
) -> None:
    script = tmp_path / "main.py"
    script.touch()
    driver = start_process("app", f"local://{script}", secret="")
    wait_for("the missing Secret", lambda: reported(driver, Reason.CREDENTIALS_MISSING), 180, 0.1)
    driver.put_credentials(ACCESS, "wrong-secret")
    wait_for("the rejected credentials", lambda: reported(driver, Reason.CREDENTIALS_REJECTED), 180, 0.1)
    report = driver.report()
    assert report is not None
    assert report.state is DriverState.WAITING
    assert report.fault is not None
    assert "'storage-keys' (spec.storage.credentialsSecretRef.name)" in report.fault.message
    assert driver.status("/healthz")[0] == 200
    assert driver.status("/readyz")[0] == 503
    driver.terminate()
    assert driver.exit_code() == EXIT_STOPPED
    assert driver.termination.reason is Reason.STOPPED
    assert "wrong-secret" not in driver.output


def test_faults_that_waiting_does_not_cure_end_the_driver_and_leave_a_log_where_it_may(
    start_process: StartDriver, object_store: ObjectStore, config: DriverConfig, credentials: Path
) -> None:
    missing = start_process("app", "count.py")
    assert missing.exit_code() == EXIT_CODES[Reason.MAIN_NOT_FOUND]
    assert missing.termination.reason is Reason.MAIN_NOT_FOUND
    assert "nearest" in missing.termination.message
    assert "counting.py" in missing.termination.message
    (log,) = driver_logs(object_store, config.storage)
    assert missing.termination.message in log

    client, key = object_store.client, config.storage.key("app.json")
    client.delete_object(Bucket=config.storage.bucket, Key=key)
    readiness.check_storage(dataclasses.replace(config, uid="another"), str(credentials))
    foreign = start_process("app", "counting.py")
    assert foreign.exit_code() == EXIT_CODES[Reason.STORAGE_OWNED]
    assert foreign.termination.reason is Reason.STORAGE_OWNED
    assert len(driver_logs(object_store, config.storage)) == 1


def test_a_runtime_that_the_operators_protocol_is_too_new_for_ends_before_it_touches_anything(
    start_process: StartDriver, object_store: ObjectStore, config: DriverConfig
) -> None:
    driver = start_process("app", "counting.py", protocol=PROTOCOL + 2)
    assert driver.exit_code() == EXIT_CODES[Reason.PROTOCOL_MISMATCH], driver.output[-3000:]
    assert driver.termination.reason is Reason.PROTOCOL_MISMATCH
    assert "The runtime in the image (protocol 1) is too old for the operator" in driver.termination.message
    assert object_store.keys(config.storage.bucket, "") == []


def test_a_second_look_at_the_storage_finds_what_the_credentials_in_use_find(config: DriverConfig) -> None:
    absent = dataclasses.replace(config, storage=dataclasses.replace(config.storage, uri="s3://no-such-bucket/x"))
    ours, wrong = Credentials(ACCESS, SECRET), Credentials(ACCESS, "wrong-secret")
    checks = [(config, ours), (config, wrong), (absent, ours)]
    faults = [readiness.find_fault(*check) for check in checks]
    reasons = [fault and fault.reason for fault in faults]
    assert reasons == [None, Reason.CREDENTIALS_REJECTED, Reason.BUCKET_NOT_FOUND]


def test_logs_of_old_processes_are_deleted_from_a_real_store(object_store: ObjectStore, config: DriverConfig) -> None:
    client, place = object_store.client, config.storage
    processes = [logs.process_name(second, 1) for second in range(logs.KEPT_PROCESSES + 3)]
    for process in processes:
        logs.put_driver_log(client, place, process, b"")
        logs.put_executor_log(client, place, process, "1", b"")
    assert logs.prune_logs(client, place) == 6
    left = [key for key in object_store.keys(place.bucket, "") if not key.endswith("/")]
    assert {key.split("/")[-2] for key in left} == set(processes[3:])
    assert logs.prune_logs(client, place) == 0


def test_a_purge_deletes_page_after_page_and_leaves_the_neighbour_alone(
    object_store: ObjectStore, config: DriverConfig, credentials: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purge, "PAGE", 50)
    readiness.check_storage(config, str(credentials))
    client, bucket = object_store.client, config.storage.bucket
    keys = [config.storage.key("lineages/1/main/state", str(n % 7), f"{n}.delta") for n in range(1100)]
    neighbours = [f"{config.storage.prefix}-2/app.json", f"{config.storage.prefix}.txt"]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda key: client.put_object(Bucket=bucket, Key=key, Body=b"x"), [*keys, *neighbours]))

    deleted = purge.purge(s3_client.connect(config.storage, Credentials(ACCESS, SECRET)), config).objects
    assert deleted >= len(keys) + 1
    assert object_store.keys(bucket, config.storage.prefix + "/") == []
    left = [key for key in object_store.keys(bucket, "") if not key.endswith("/")]
    assert sorted(left) == sorted(neighbours)
    assert purge.purge(client, config).objects == 0


def test_a_purge_deletes_nothing_of_another_application(
    object_store: ObjectStore, config: DriverConfig, credentials: Path
) -> None:
    readiness.check_storage(dataclasses.replace(config, uid="another"), str(credentials))
    with pytest.raises(FaultError) as caught:
        purge.purge(object_store.client, config)
    assert caught.value.fault.reason is Reason.STORAGE_OWNED
    assert config.storage.key("app.json") in object_store.keys(config.storage.bucket, "")
