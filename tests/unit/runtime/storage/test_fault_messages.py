"""What keeps a driver from running is said in one sentence: what to do about it is the operator's to say."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError, ParamValidationError

from tidegate_spark.contract.protocol import PROTOCOL, Fault, Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.driver import preflight
from tidegate_spark.storage.claim.claimed import Known
from tidegate_spark.storage.claim.claiming import BehindError
from tidegate_spark.storage.s3_client import Credentials, EndpointError, FaultError, connect, fault_of, read_credentials
from tidegate_testing.driver_process import driver_config

PLACE = Storage("s3://bucket/n/a", "http://s3:9000")


def answer(code: str, status: int) -> Exception:
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "PutObject")  # type: ignore[typeddict-item] # the rest of an answer is not looked at


def is_one_sentence(message: str) -> bool:
    return message.endswith(".") and ". " not in message


@pytest.mark.parametrize(
    ("error", "reason", "named"),
    [
        (answer("NoSuchBucket", 404), Reason.BUCKET_NOT_FOUND, "'bucket' (spec.storage.uri)"),
        (answer("AccessDenied", 403), Reason.CREDENTIALS_REJECTED, "'keys' (spec.storage.credentialsSecretRef.name)"),
        (answer("PermanentRedirect", 301), Reason.STORAGE_UNAVAILABLE, "'us-east-1' (spec.storage.region)"),
        (answer("NotImplemented", 501), Reason.STORAGE_UNSUITABLE, "'bucket' (spec.storage.uri)"),
        (answer("ServiceUnavailable", 503), Reason.STORAGE_UNAVAILABLE, "ServiceUnavailable (HTTP 503)"),
        (answer("SlowDown", 503), Reason.STORAGE_THROTTLED, "SlowDown (HTTP 503)"),
        (answer("ExpiredToken", 400), Reason.CREDENTIALS_EXPIRED, "'keys' (spec.storage.credentialsSecretRef.name)"),
        (NoCredentialsError(), Reason.CREDENTIALS_MISSING, "spec.storage.credentialsSecretRef.name"),
        (
            EndpointConnectionError(endpoint_url="http://s3:9000/bucket"),
            Reason.STORAGE_UNAVAILABLE,
            "http://s3:9000 (spec.storage.endpoint)",
        ),
    ],
)
def test_a_fault_of_the_store_is_one_sentence_with_the_field(error: Exception, reason: Reason, named: str) -> None:
    fault = fault_of(error, PLACE, "keys")
    assert fault is not None
    assert fault.reason is reason
    assert named in fault.message
    assert is_one_sentence(fault.message)


@pytest.mark.parametrize(
    ("endpoint", "region", "field"),
    [
        ("s3:9000", "us-east-1", "s3:9000 (spec.storage.endpoint)"),
        ("http://[::1", "us-east-1", "http://[::1 (spec.storage.endpoint)"),
        ("", "no region", "S3 in region no region (spec.storage.region)"),
    ],
)
def test_a_place_that_is_none_is_the_storages_fault_and_no_silence_of_it(
    endpoint: str, region: str, field: str
) -> None:
    place = Storage("s3://bucket/n/a", endpoint, region)
    with pytest.raises(EndpointError) as caught:
        connect(place, Credentials("id", "key"))
    fault = fault_of(caught.value, place, "keys")
    assert fault is not None
    assert fault.reason is Reason.STORAGE_UNAVAILABLE
    assert field in fault.message
    assert "No answer" not in fault.message


@pytest.mark.parametrize(
    "error",
    [
        ValueError("what was read there cannot be meant"),
        json.JSONDecodeError("Expecting value", "", 0),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        ParamValidationError(report="Missing required parameter in input: Key"),
        KeyError("ETag"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_cannot_be_read_or_was_never_sent_is_not_called_a_silence_of_the_store(error: Exception) -> None:
    assert fault_of(error, PLACE, "keys") is None


def fault_of_files(main: str, *files: str) -> Fault:
    try:
        preflight.find_files(files)
        preflight.find_main(main)
    except FaultError as error:
        return error.fault
    pytest.fail("everything was found")


@pytest.mark.parametrize(
    ("its", "said"),
    [
        (PROTOCOL + 2, "The runtime in the image (protocol 1) is too old for the operator (protocol 3)."),
        (PROTOCOL - 2, "The operator (protocol -1) is too old for the runtime in the image (protocol 1)."),
    ],
)
def test_an_operator_that_is_too_far_from_the_runtime_gets_nothing_started_and_is_told_who_is_too_old(
    its: int, said: str
) -> None:
    with pytest.raises(FaultError) as raised:
        preflight.refuse_other_protocol(driver_config("a", "local:///main.py", PLACE, protocol=its))
    assert raised.value.fault == Fault(Reason.PROTOCOL_MISMATCH, said)


@pytest.mark.parametrize("its", [PROTOCOL - 1, PROTOCOL, PROTOCOL + 1])
def test_an_operator_of_the_protocol_before_or_after_is_as_good_as_one_of_the_same(its: int) -> None:
    preflight.refuse_other_protocol(driver_config("a", "local:///main.py", PLACE, protocol=its))


def test_a_missing_program_is_one_sentence_with_the_nearest_names(tmp_path: Path) -> None:
    (tmp_path / "count.py").touch()
    main = f"local://{tmp_path}/count.py"
    faults = [
        fault_of_files(f"local://{tmp_path}/counts.py"),
        fault_of_files(f"local://{tmp_path}/nowhere/count.py"),
        fault_of_files("jsn"),
        fault_of_files(main, "s3://bucket/extra.py"),
        fault_of_files(main, f"local://{tmp_path}/other.zip"),
    ]
    assert {fault.reason for fault in faults} == {Reason.MAIN_NOT_FOUND}
    assert [fault.message for fault in faults if not is_one_sentence(fault.message)] == []
    assert "count.py" in faults[0].message.partition("nearest")[2]
    assert "json" in faults[2].message


def test_missing_keys_of_the_secret_are_one_sentence_with_their_names(tmp_path: Path) -> None:
    (tmp_path / "AWS_ACCESS_KEY_ID").write_text("id")
    with pytest.raises(FaultError) as caught:
        read_credentials(str(tmp_path), "keys")
    assert caught.value.fault.message == (
        "Secret 'keys' (spec.storage.credentialsSecretRef.name) has no AWS_SECRET_ACCESS_KEY."
    )


@pytest.mark.parametrize(("known", "named"), [(7, "epoch 7"), (3, "another pod of epoch 3")])
def test_a_driver_that_does_not_write_says_who_does(known: int, named: str) -> None:
    config = replace(driver_config("app", "main.py", Storage("s3://bucket/app")), epoch=3)
    said = str(BehindError("s3://bucket/app/fence.json", config, Known(known, 1)))
    assert f"names {named} of this application as the user of the storage; this driver is epoch 3" in said
