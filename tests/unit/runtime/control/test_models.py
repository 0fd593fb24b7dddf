"""A model that nobody can have is refused before it is in force; what may pass by itself is not."""

import hashlib
import os
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from tidegate_spark.contract.control_protocol import ModelSettings
from tidegate_spark.contract.object_paths import Storage
from tidegate_spark.control.worker.models import (
    MOST_KEPT,
    RECENT_SECONDS,
    UNUSED_SECONDS,
    ModelError,
    TooLargeError,
    fetcher,
    file_of,
    inspected,
)
from tidegate_spark.control_log.entries import Entry, Kind
from tidegate_spark.control_log.reducer import Model
from tidegate_testing.control_log import message

SETTINGS = ModelSettings(("s3://models/", "file:///opt/models/"), 1 << 20)
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


def kept(directory: Path) -> list[Path]:
    return sorted(path for path in directory.iterdir() if not path.name.startswith("."))


def test_a_model_that_is_whole_is_taken() -> None:
    for entry in (reload(), reload(sha256=SHA.upper())):
        assert inspected(entry, Store(), SETTINGS) == entry


def test_one_with_another_checksum_is_refused_and_says_which_it_has() -> None:
    entry = inspected(reload(sha256="0" * 64), Store(), SETTINGS)
    assert (entry.kind, entry.reason, entry.payload) == (Kind.REJECTED, "ModelDamaged", "null")
    assert SHA in entry.message


@pytest.mark.parametrize(
    "error", [answer(301), answer(404), answer(403), ModelError("ftp:// is not read"), ValueError("odd")]
)
def test_one_that_cannot_be_had_is_refused(error: Exception) -> None:
    assert inspected(reload(), Store(error), SETTINGS).reason == "ModelNotFound"


@pytest.mark.parametrize("error", [answer(503), answer(429), EndpointConnectionError(endpoint_url="http://s3")])
def test_a_store_that_does_not_answer_says_nothing_of_the_model(error: Exception) -> None:
    with pytest.raises(type(error)):
        inspected(reload(), Store(error), SETTINGS)


def test_files_of_the_workers_are_not_looked_at() -> None:
    store, entry = Store(), reload("file:///opt/models/a.bin")
    assert inspected(entry, store, SETTINGS) == entry
    assert store.asked == []


def test_files_that_nobody_asked_for_in_a_day_go_when_a_new_one_comes(tmp_path: Path) -> None:
    def fetch(uri: str, file: BinaryIO) -> None:
        file.write(uri.encode())

    def have(name: str) -> Path:
        return file_of(Model(name, hashlib.sha256(name.encode()).hexdigest(), 1), tmp_path, fetch, 1 << 20)

    unused, used = have("unused"), have("used")
    left_by_a_killed_process = tmp_path / "tmpabc"
    left_by_a_killed_process.touch()
    long_ago = time.time() - UNUSED_SECONDS - 60
    for path in (unused, used, left_by_a_killed_process):
        os.utime(path, (long_ago, long_ago))
    assert have("used") == used
    new = have("new")
    assert kept(tmp_path) == sorted([used, new])
    assert have("unused").read_bytes() == b"unused"


def test_models_that_were_used_longest_ago_go_where_one_more_has_no_room(tmp_path: Path) -> None:
    limit = 10

    def have(name: str) -> Path:
        content = name.encode() * limit
        return file_of(
            Model(name, hashlib.sha256(content).hexdigest(), 1), tmp_path, lambda uri, file: take(file, content), limit
        )

    def take(file: BinaryIO, content: bytes) -> None:
        file.write(content)

    first, *others = [have(name) for name in "abc"[:MOST_KEPT]]
    with pytest.raises(ModelError, match=r"spec\.control\.models\.sizeLimit"):
        have("d")
    for age, path in enumerate(reversed([first, *others])):
        os.utime(path, (0, time.time() - RECENT_SECONDS - 60 - age))
    assert have("a") == first
    new = have("d")
    assert kept(tmp_path) == sorted([first, others[1], new])


def test_one_that_may_not_be_named_is_refused_without_a_look_at_it() -> None:
    store = Store()
    for uri in (
        "s3://models-evil/a.bin",
        "s3://models/../secrets/a.bin",
        "s3://models/%2e%2e/secrets/a.bin",
        "s3://other/a.bin",
        "file:///etc/passwd",
        "file:///opt/models/../../etc/passwd",
        "http://models/a.bin",
    ):
        entry = inspected(reload(uri), store, SETTINGS)
        assert (entry.kind, entry.reason, entry.payload) == (Kind.REJECTED, "ModelNotAllowed", "null"), uri
    assert store.asked == []
    with_none = inspected(reload(), store, ModelSettings(()))
    assert (with_none.reason, store.asked) == ("ModelNotAllowed", [])
    assert "spec.control.models.allowedPrefixes" in with_none.message


def test_one_that_is_too_large_is_refused_by_what_is_read() -> None:
    entry = inspected(reload(), Store(TooLargeError("more than 5 bytes")), SETTINGS)
    assert (entry.kind, entry.reason) == (Kind.REJECTED, "ModelTooLarge")


# --- files ---


def read(path: Path, limit: int = 100) -> bytes:
    target = path.parent / "target"
    with target.open("wb") as file:
        fetcher(Storage("s3://b/a"), size_limit=limit)(f"file://{path}", file)
    return target.read_bytes()


def test_a_regular_file_is_read_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"x" * 100)
    assert read(path) == b"x" * 100
    with pytest.raises(TooLargeError, match=r"more than 99 bytes \(spec\.control\.models\.sizeLimit\)"):
        read(path, 99)


def test_what_is_no_regular_file_is_not_read_and_nothing_waits_for_it(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.bin").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "real" / "a.bin")
    (tmp_path / "folder").symlink_to(tmp_path / "real")
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
    for name, text in (
        ("link", "link is a symbolic link"),
        ("folder/a.bin", "folder is a symbolic link"),
        ("fifo", "fifo is no regular file"),
        ("real", "real is no regular file"),
    ):
        with pytest.raises(ModelError, match=text):
            read(tmp_path / name)
    with (tmp_path / "target").open("wb") as file, pytest.raises(ModelError, match="/dev/zero is no regular file"):
        fetcher(Storage("s3://b/a"), size_limit=100)("file:///dev/zero", file)
    for name in ("socket", "missing", "real/a.bin/further"):
        with pytest.raises(OSError, match=r"\["):
            read(tmp_path / name)


def test_only_one_process_of_a_pod_fetches_at_a_time(tmp_path: Path) -> None:
    """What a second one finds is that of the first, and it stops waiting when its time is up."""
    model, asked = Model("s3://models/a.bin", SHA, 1), []

    def fetch(uri: str, file: BinaryIO) -> None:
        asked.append(uri)
        with pytest.raises(ModelError, match="another process"):
            file_of(replace(model, sha256="0" * 64), tmp_path, fetch, 100, lambda: True)
        file.write(b"weights")

    assert file_of(model, tmp_path, fetch, 100).read_bytes() == b"weights"
    assert file_of(model, tmp_path, fetch, 100).read_bytes() == b"weights"
    assert asked == [model.uri]
