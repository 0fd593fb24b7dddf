"""What S3's answers mean that a real server does not give on demand: moments of weakness, encryption, refusals."""

import io
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, FlexibleChecksumError, ResponseStreamingError
from botocore.stub import ANY, Stubber

from tidegate_spark.contract.protocol import Storage
from tidegate_spark.storage.s3 import ATTEMPTS, S3Store, reach
from tidegate_spark.storage.s3_client import Credentials, connect, moment_of
from tidegate_spark.storage.store import Entry, Found, MismatchError, NotDeletedError, Place, VanishedError

ETAG, OTHER = '"d41d8cd98f00b204e9800998ecf8427e"', '"c4ca4238a0b923820dcc509a6f75849b"'
SOURCE = Place("there", "a")


@pytest.fixture
def s3() -> Iterator[tuple[S3Store, Stubber, list[float]]]:
    """A store, what its client is to answer, and the pauses that were made."""
    client = connect(Storage("s3://here", "http://127.0.0.1:1"), Credentials("key", "secret"))
    pauses: list[float] = []
    with Stubber(client) as stub:
        yield S3Store(client, "here", pause=pauses.append), stub, pauses


S3 = tuple[S3Store, Stubber, list[float]]


def copied(etag: str) -> dict[str, Any]:
    return {"CopyObjectResult": {"ETag": etag}}


def headed(etag: str, size: int = 4, **fields: Any) -> dict[str, Any]:
    return {"ETag": etag, "ContentLength": size, **fields}


@pytest.mark.parametrize(
    ("code", "status"), [("SlowDown", 503), ("InternalError", 500), ("Throttled", 429), ("RequestLimitExceeded", 400)]
)
def test_what_fails_for_the_moment_is_asked_again_with_pauses_that_grow(s3: S3, code: str, status: int) -> None:
    store, stub, pauses = s3
    for _ in range(ATTEMPTS - 1):
        stub.add_client_error("put_object", code, http_status_code=status)
    stub.add_response("put_object", {"ETag": ETAG})
    store.put("a", b"body")
    assert len(pauses) == ATTEMPTS - 1
    assert pauses[-1] > pauses[0]
    assert sum(pauses) < 60


def test_what_fails_for_longer_is_raised(s3: S3) -> None:
    store, stub, _ = s3
    for _ in range(ATTEMPTS):
        stub.add_client_error("list_objects_v2", "SlowDown", http_status_code=503)
    with pytest.raises(ClientError, match="SlowDown"):
        list(store.list("a/"))


def test_what_is_refused_is_not_asked_again(s3: S3) -> None:
    store, stub, pauses = s3
    stub.add_client_error("get_object", "AccessDenied", http_status_code=403)
    with pytest.raises(ClientError, match="AccessDenied"):
        store.get("a")
    assert pauses == []


REQUESTS: dict[str, Callable[[S3Store], object]] = {
    "get_object": lambda store: store.get("a"),
    "put_object": lambda store: store.put_if("a", b"", ETAG),
    "copy_object": lambda store: store.copy(SOURCE, "b", 4, ETAG),
    "list_objects_v2": lambda store: list(store.list("")),
}


@pytest.mark.parametrize("request_name", REQUESTS)
def test_a_bucket_that_is_gone_is_not_an_object_that_is_gone(s3: S3, request_name: str) -> None:
    store, stub, _ = s3
    stub.add_client_error(request_name, "NoSuchBucket", http_status_code=404)
    with pytest.raises(ClientError, match="NoSuchBucket"):
        REQUESTS[request_name](store)


def test_a_conflict_of_two_conditional_writes_is_a_refusal(s3: S3) -> None:
    store, stub, _ = s3
    for status in (409, 412):
        stub.add_client_error("put_object", "ConditionalRequestConflict", http_status_code=status)
        assert store.put_if("a", b"", None) is None
    stub.add_client_error("put_object", "NoSuchKey", http_status_code=404)
    assert store.put_if("a", b"", ETAG) is None


# --- copies ---


def test_a_copy_with_the_same_etag_takes_one_request_which_names_what_is_to_be_copied(s3: S3) -> None:
    store, stub, _ = s3
    expected = {"Bucket": "here", "Key": "b", "CopySource": ANY, "CopySourceIfMatch": ETAG}
    stub.add_response("copy_object", copied(ETAG), expected)
    assert store.copy(SOURCE, "b", 4, ETAG) == Found(4, ETAG)
    stub.assert_no_pending_responses()


@pytest.mark.parametrize("listed", [ETAG, ETAG.strip('"')])
@pytest.mark.parametrize("answered", [ETAG, ETAG.strip('"')])
def test_an_etag_is_the_same_whether_a_store_writes_it_with_quotation_marks_or_without(
    s3: S3, listed: str, answered: str
) -> None:
    store, stub, _ = s3
    entry = {"Key": "a", "Size": 4, "ETag": listed, "LastModified": datetime(2026, 1, 1, tzinfo=UTC)}
    stub.add_response("list_objects_v2", {"Contents": [entry]})
    stub.add_response("copy_object", copied(answered))
    stub.add_response("head_object", headed(answered))
    (found,) = store.list("")
    assert store.copy(Place("here", found.key), "b", found.size, found.etag) == Found(4, ETAG)
    head = store.head("b")
    assert head is not None
    assert (found.etag, head.etag, head.plain) == (ETAG, ETAG, True)
    stub.assert_no_pending_responses()


def test_the_head_of_an_object_is_asked_for_alone_and_an_empty_one_has_none(s3: S3) -> None:
    store, stub, _ = s3
    wanted = {"Bucket": "here", "Key": "a", "Range": "bytes=0-3"}
    stub.add_response("get_object", {"Body": io.BytesIO(b"head")}, wanted)
    stub.add_response("get_object", {"Body": io.BytesIO(b"head and all the rest")}, wanted)
    assert [store.get_head("a", 4) for _ in range(2)] == [b"head", b"head"]
    stub.add_client_error("get_object", "InvalidRange", http_status_code=416)
    stub.add_client_error("get_object", "NoSuchKey", http_status_code=404)
    assert [store.get_head("a", 4) for _ in range(2)] == [b"", None]


def answers(stub: Stubber, original: dict[str, Any], copy: dict[str, Any]) -> None:
    stub.add_response("copy_object", copied(copy["ETag"]))
    stub.add_response("head_object", original, {"Bucket": "there", "Key": "a", "ChecksumMode": "ENABLED"})
    stub.add_response("head_object", copy, {"Bucket": "here", "Key": "b", "ChecksumMode": "ENABLED"})


ENCRYPTED: dict[str, Any] = {"ServerSideEncryption": "aws:kms"}
CHECKED: dict[str, Any] = {"ChecksumCRC64NVME": "aaaaaaaaaaa=", "ChecksumType": "FULL_OBJECT"}


@pytest.mark.parametrize(
    ("original", "copy"),
    [
        pytest.param(headed(ETAG, **ENCRYPTED), headed(OTHER, **ENCRYPTED), id="encrypted"),
        pytest.param(headed(ETAG), headed(OTHER, **ENCRYPTED), id="only the copy is encrypted"),
        pytest.param(headed('"0-3"'), headed(OTHER), id="the source was put in parts"),
        pytest.param(headed('"0-3"', **CHECKED), headed(OTHER, **CHECKED), id="with equal checksums"),
    ],
)
def test_a_copy_may_have_another_etag(s3: S3, original: dict[str, Any], copy: dict[str, Any]) -> None:
    store, stub, _ = s3
    answers(stub, original, copy)
    assert store.copy(SOURCE, "b", 4, original["ETag"]).etag == OTHER


@pytest.mark.parametrize(
    ("original", "copy"),
    [
        pytest.param(headed(ETAG), headed(OTHER), id="plain objects, whose ETags are checksums"),
        pytest.param(headed(ETAG, **CHECKED), headed(OTHER), id="plain objects, one with another checksum"),
        pytest.param(headed('"0-3"'), headed(OTHER, size=3), id="another size"),
        pytest.param(
            headed('"0-3"', **CHECKED),
            headed(OTHER, ChecksumCRC64NVME="bbbbbbbbbbb=", ChecksumType="FULL_OBJECT"),
            id="another checksum",
        ),
    ],
)
def test_a_copy_that_is_something_else_is_noticed(s3: S3, original: dict[str, Any], copy: dict[str, Any]) -> None:
    store, stub, _ = s3
    answers(stub, original, copy)
    with pytest.raises(MismatchError, match="b is not what a is"):
        store.copy(SOURCE, "b", 4, original["ETag"])


def test_a_copy_that_is_overwritten_at_once_is_noticed(s3: S3) -> None:
    store, stub, _ = s3
    stub.add_response("copy_object", copied(OTHER))
    stub.add_response("head_object", headed('"0-3"'))
    stub.add_response("head_object", headed('"1-3"'))
    with pytest.raises(MismatchError, match="is another object now"):
        store.copy(SOURCE, "b", 4, '"0-3"')


def test_a_source_that_has_changed_when_the_copy_is_compared_has_vanished(s3: S3) -> None:
    store, stub, _ = s3
    answers(stub, headed('"1-3"'), headed(OTHER))
    with pytest.raises(VanishedError, match="a has changed"):
        store.copy(SOURCE, "b", 4, '"0-3"')


def test_a_source_that_is_gone_when_the_copy_is_compared_does_no_harm(s3: S3) -> None:
    store, stub, _ = s3
    stub.add_response("copy_object", copied(OTHER))
    stub.add_client_error("head_object", "404", http_status_code=404)
    stub.add_response("head_object", headed(OTHER))
    assert store.copy(SOURCE, "b", 4, '"0-3"').etag == OTHER


@pytest.mark.parametrize(("code", "status"), [("NoSuchKey", 404), ("PreconditionFailed", 412)])
def test_a_source_that_is_gone_or_changed_has_vanished(s3: S3, code: str, status: int) -> None:
    store, stub, _ = s3
    stub.add_client_error("copy_object", code, http_status_code=status)
    with pytest.raises(VanishedError):
        store.copy(SOURCE, "b", 4, ETAG)


@pytest.mark.parametrize(
    ("fields", "checksum", "plain"),
    [
        ({}, "", True),
        (ENCRYPTED, "", False),
        ({"SSECustomerAlgorithm": "AES256"}, "", False),
        (CHECKED, "crc64nvme:aaaaaaaaaaa=", True),
        ({**ENCRYPTED, **CHECKED}, "crc64nvme:aaaaaaaaaaa=", False),
        ({"ETag": '"0-3"', **CHECKED}, "crc64nvme:aaaaaaaaaaa=", False),
        ({"ChecksumSHA256": "abc=-3", "ChecksumType": "COMPOSITE", **ENCRYPTED}, "", False),
    ],
)
def test_the_checksum_is_that_of_the_whole_content_or_none(
    s3: S3, fields: dict[str, Any], checksum: str, plain: bool
) -> None:
    store, stub, _ = s3
    stub.add_response("head_object", {**headed(ETAG), **fields})
    assert store.head("a") == Found(4, fields.get("ETag", ETAG), checksum, plain)


# --- others ---


def test_what_the_store_refuses_to_delete_is_told(s3: S3) -> None:
    store, stub, _ = s3
    refusal = {"Key": "a", "Code": "AccessDenied", "Message": "no"}
    stub.add_response("delete_objects", {"Errors": [refusal, {"Key": "b", "Code": "NoSuchKey"}]})
    with pytest.raises(NotDeletedError, match="1 objects are not deleted; a: AccessDenied: no"):
        store.delete(["a", "b"])


def test_what_a_busy_store_did_not_get_to_is_deleted_again_alone(s3: S3) -> None:
    store, stub, pauses = s3
    for keys, busy in ((["a", "b", "c"], ["b", "c"]), (["b", "c"], ["c"]), (["c"], [])):
        wanted = {"Objects": [{"Key": key} for key in keys], "Quiet": True}
        refused = [{"Key": key, "Code": "SlowDown", "Message": "Reduce your request rate."} for key in busy]
        stub.add_response("delete_objects", {"Errors": refused}, {"Bucket": "here", "Delete": wanted})
    store.delete(["a", "b", "c"])
    stub.assert_no_pending_responses()
    assert len(pauses) == 2


def test_a_store_that_stays_busy_and_one_that_also_refuses_are_told(s3: S3) -> None:
    store, stub, pauses = s3
    busy = {"Key": "a", "Code": "InternalError", "Message": "Try again."}
    for _ in range(ATTEMPTS):
        stub.add_response("delete_objects", {"Errors": [busy]})
    with pytest.raises(NotDeletedError, match="1 objects are not deleted; a: InternalError"):
        store.delete(["a"])
    assert len(pauses) == ATTEMPTS - 1
    stub.add_response("delete_objects", {"Errors": [busy, {"Key": "b", "Code": "AccessDenied", "Message": "no"}]})
    with pytest.raises(NotDeletedError, match="2 objects are not deleted; b: AccessDenied"):
        store.delete(["a", "b"])


def test_a_listing_goes_on_where_a_page_failed(s3: S3) -> None:
    store, stub, _ = s3
    moment = datetime.fromtimestamp(5, UTC)
    item = {"Size": 1, "ETag": ETAG, "LastModified": moment}
    first = {
        "Contents": [{"Key": "a", **item}, {"Key": "b/", **item}],
        "IsTruncated": True,
        "NextContinuationToken": "t",
    }
    stub.add_response("list_objects_v2", first)
    stub.add_client_error("list_objects_v2", "SlowDown", http_status_code=503)
    stub.add_response(
        "list_objects_v2",
        {"Contents": [{"Key": "c", **item}]},
        {"Bucket": "here", "Prefix": "", "ContinuationToken": "t"},
    )
    assert list(store.list("")) == [Entry("a", 1, ETAG, 5.0), Entry("c", 1, ETAG, 5.0)]


@pytest.mark.parametrize(
    ("endpoint", "service"),
    [("http://127.0.0.1:1", "127.0.0.1:1"), ("https://s3.eu-west-1.amazonaws.com", "amazonaws.com")],
)
def test_stores_of_one_service_copy_between_each_other(endpoint: str, service: str) -> None:
    client = connect(Storage("s3://here", endpoint), Credentials("key", "secret"))
    assert S3Store(client, "here").service == service


@pytest.mark.parametrize(
    "said", ["2026-11-21T20:08:02.000Z", "2026-11-21T20:08:02Z", "Sat, 21 Nov 2026 20:08:02 GMT", 1795291682]
)
def test_a_time_is_read_in_any_form_that_stores_use(said: object) -> None:
    assert moment_of(said).timestamp() == 1795291682


# --- content read to its end ---


class Body:
    """Pieces of a body, of which the connection may break."""

    def __init__(self, *pieces: bytes, breaks: Exception | None = None) -> None:
        self.pieces, self.breaks = pieces, breaks

    def read(self) -> bytes:
        raise AssertionError("not to be held whole in memory")

    def iter_chunks(self, size: int) -> Iterator[bytes]:
        yield from self.pieces
        if self.breaks is not None:
            raise self.breaks


def test_a_body_that_breaks_off_is_read_again_from_its_beginning(s3: S3) -> None:
    store, stub, pauses = s3
    broken = Body(b"bo", breaks=ResponseStreamingError(error="reset"))
    for body in (broken, Body(b"bo", b"dy")):
        stub.add_response("get_object", {"Body": body, "ContentLength": 4})
    found = store.digest("a")
    assert found is not None
    assert (found.size, found.md5, len(pauses)) == (4, "841a2d689ad86bd1611447453c22c6fc", 1)


def test_a_file_is_written_in_pieces_and_again_from_its_beginning_where_a_body_breaks_off(
    s3: S3, tmp_path: Path
) -> None:
    store, stub, pauses = s3
    broken = Body(b"brok", breaks=ResponseStreamingError(error="reset"))
    for body in (broken, Body(b"b", b"o")):
        stub.add_response("get_object", {"Body": body, "ContentLength": 4})
    assert (store.get_file("a", tmp_path / "file"), len(pauses)) == (2, 1)
    assert (tmp_path / "file").read_bytes() == b"bo"
    stub.add_client_error("get_object", "NoSuchKey", http_status_code=404)
    assert store.get_file("a", tmp_path / "file") is None


def test_a_body_that_the_stores_checksum_contradicts_is_damaged(s3: S3) -> None:
    store, stub, pauses = s3
    wrong = Body(b"body", breaks=FlexibleChecksumError(error_msg="crc32 differs"))
    stub.add_response("get_object", {"Body": wrong, "ContentLength": 4})
    with pytest.raises(MismatchError, match="crc32 differs"):
        store.digest("a")
    assert pauses == []


def test_an_object_that_is_gone_has_no_content(s3: S3) -> None:
    store, stub, _ = s3
    stub.add_client_error("get_object", "NoSuchKey", http_status_code=404)
    assert store.digest("a") is None


def test_a_store_that_is_reached_with_other_credentials_is_another_store() -> None:
    place = Storage("s3://here", "http://127.0.0.1:1")
    plain, apart = (reach(place, Credentials("key", "secret"), 1, apart=apart) for apart in (False, True))
    assert plain.service == "127.0.0.1:1"
    assert apart.service != plain.service
