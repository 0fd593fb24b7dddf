"""A model that nobody can have is refused before it is in force; what may pass by itself is not."""

import hashlib
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from tidegate_spark.control.models import UNUSED_SECONDS, ModelError, file_of, inspected
from tidegate_spark.control_log.entries import Entry, Kind
from tidegate_spark.control_log.fold import Model
from tidegate_testing.control_log import message

SHA = hashlib.sha256(b"weights").hexdigest()


def reload(uri: str = "s3://models/a.bin", sha256: str = SHA) -> Entry:
    return message("reload-model", {"name": "a", "uri": uri, "sha256": sha256})


class Store:
    """Has one model, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.asked: list[str] = []

    def __call__(self, uri: str, file: BinaryIO) -> None:
        self.asked.append(uri)
        if self.error is not None:
            raise self.error
        file.write(b"wei")
        file.write(b"ghts")


def answer(status: int) -> Any:
    response: Any = {"Error": {"Code": str(status)}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "GetObject")


def test_a_model_that_is_whole_is_taken() -> None:
    for entry in (reload(), reload(sha256=SHA.upper())):
        assert inspected(entry, Store()) == entry


def test_one_with_another_checksum_is_refused_and_says_which_it_has() -> None:
    entry = inspected(reload(sha256="0" * 64), Store())
    assert (entry.kind, entry.reason, entry.payload) == (Kind.REJECTED, "ModelDamaged", "null")
    assert SHA in entry.message


@pytest.mark.parametrize(
    "error", [answer(301), answer(404), answer(403), ModelError("ftp:// is not read"), ValueError("odd")]
)
def test_one_that_cannot_be_had_is_refused(error: Exception) -> None:
    assert inspected(reload(), Store(error)).reason == "ModelNotFound"


@pytest.mark.parametrize("error", [answer(503), answer(429), EndpointConnectionError(endpoint_url="http://s3")])
def test_a_store_that_does_not_answer_says_nothing_of_the_model(error: Exception) -> None:
    with pytest.raises(type(error)):
        inspected(reload(), Store(error))


def test_nothing_else_is_looked_at() -> None:
    store = Store()
    entries = (reload("file:///opt/a.bin"), message(), replace(reload(), kind=Kind.REJECTED, payload="null"))
    assert [inspected(entry, store) for entry in entries] == list(entries)
    assert store.asked == []


def test_files_that_nobody_asked_for_in_a_day_go_when_a_new_one_comes(tmp_path: Path) -> None:
    def fetch(uri: str, file: BinaryIO) -> None:
        file.write(uri.encode())

    def have(name: str) -> Path:
        return file_of(Model(name, hashlib.sha256(name.encode()).hexdigest(), 1), tmp_path, fetch)

    unused, used = have("unused"), have("used")
    left_by_a_killed_process = tmp_path / "tmpabc"
    left_by_a_killed_process.touch()
    long_ago = time.time() - UNUSED_SECONDS - 60
    for path in (unused, used, left_by_a_killed_process):
        os.utime(path, (long_ago, long_ago))
    assert have("used") == used
    new = have("new")
    assert sorted(tmp_path.iterdir()) == sorted([used, new])
    assert have("unused").read_bytes() == b"unused"
