"""An object is read with the ETag that belongs to it. A client that answers from a list stands for the store."""

import hashlib
import io
from typing import Any, cast

import pytest

from tidegate_spark.contract.protocol import Storage
from tidegate_spark.storage import s3_client

PLACE = Storage("s3://bucket/apps/shop/orders")
OLD, NEW = b"epoch 1", b"epoch 2"


def etag_of(body: bytes) -> str:
    return f'"{hashlib.md5(body).hexdigest()}"'


class Answering:
    """Gives these contents and ETags, one after the other, and the last one for ever."""

    def __init__(self, *answers: tuple[bytes, str]) -> None:
        self.left, self.asked = list(answers), 0

    def get_object(self, **_: Any) -> dict[str, Any]:
        self.asked += 1
        body, etag = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        return {"Body": io.BytesIO(body), "ETag": etag}


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate_spark.storage.s3_client.time.sleep", lambda _: None)


def read(store: Answering) -> tuple[bytes, str] | None:
    return s3_client.read_object(cast("Any", store), PLACE, "key")


def test_an_etag_that_is_the_content_s_md5_is_believed_at_once() -> None:
    store = Answering((NEW, etag_of(NEW)))
    assert (read(store), store.asked) == ((NEW, etag_of(NEW)), 1)


def test_an_old_content_with_a_new_etag_is_read_again() -> None:
    assert read(Answering((OLD, etag_of(NEW)), (NEW, etag_of(NEW)))) == (NEW, etag_of(NEW))


def test_an_etag_that_is_no_checksum_is_believed_when_it_is_read_twice() -> None:
    store = Answering((NEW, '"opaque-7"'))
    assert (read(store), store.asked) == ((NEW, '"opaque-7"'), 2)


def test_what_is_too_large_to_be_in_memory_twice_is_read_once() -> None:
    large = bytes(s3_client.LARGEST_DOUBTED + 1)
    store = Answering((large, '"of parts-2"'))
    assert (read(store), store.asked) == ((large, '"of parts-2"'), 1)


def test_a_large_old_content_with_a_new_etag_is_read_again() -> None:
    old, new = bytes(s3_client.LARGEST_DOUBTED + 1), bytes(s3_client.LARGEST_DOUBTED + 2)
    store = Answering((old, etag_of(new)), (new, etag_of(new)))
    assert read(store) == (new, etag_of(new))


def test_clients_share_what_describes_the_service_and_nothing_else() -> None:
    one, other = (s3_client.connect(PLACE, s3_client.Credentials(key, "secret")) for key in ("first", "second"))
    assert one.meta.service_model.metadata is other.meta.service_model.metadata
    keys = {client._request_signer._credentials.access_key for client in (one, other)}  # type: ignore[attr-defined] # boto3 tells of them nowhere else
    assert keys == {"first", "second"}
    assert one.meta.events is not other.meta.events
