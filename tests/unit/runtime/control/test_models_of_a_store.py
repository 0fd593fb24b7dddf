"""Models come from the store that the spec names, and are no larger than they may be, whatever the store says."""

import io
import json
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from botocore.exceptions import ClientError

from tidegate_spark.contract.control_protocol import ControlOrder, ControlOrders, MessageState, ModelSettings
from tidegate_spark.contract.object_paths import Storage
from tidegate_spark.control.messages.handlers import Declared
from tidegate_spark.control.service.message_service import MessageService
from tidegate_spark.control.worker.models import TooLargeError, fetcher, inspected
from tidegate_spark.storage.s3_client import Credentials
from tidegate_testing.control_log import message, repository_in
from tidegate_testing.fake_operations import FakeOperations
from tidegate_testing.memory_store import Buckets
from tidegate_testing.serving import serving


class Store:
    """Answers every request alike, and notes it."""

    def __init__(self) -> None:
        self.status, self.headers, self.body = 200, dict[str, str](), b""
        self.asked: list[str] = []
        self.free: threading.Event | None = None
        """What it waits for before it ends an answer."""
        outer = self

        class Answering(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(f"{self.command} {self.path}")
                self.send_response(outer.status)
                for name, value in outer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(outer.body)
                if outer.free is not None:
                    outer.free.wait()

            def do_HEAD(self) -> None:
                self.do_GET()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)

    @property
    def place(self) -> Storage:
        return Storage("s3://models/app", f"http://127.0.0.1:{self.server.server_port}", path_style_access=True)

    def fetch(self, limit: int = 100, is_over: Callable[[], bool] = lambda: False) -> bytes:
        file = io.BytesIO()
        made = fetcher(self.place, lambda: Credentials("key", "secret"), size_limit=limit, is_over=is_over)
        made("s3://models/a.bin", file)
        return file.getvalue()


@pytest.fixture
def store() -> Iterator[Store]:
    found = Store()
    with serving(found.server):
        yield found


def test_an_object_is_read_up_to_the_limit(store: Store) -> None:
    store.headers, store.body = {"Content-Length": "100"}, b"x" * 100
    assert store.fetch() == b"x" * 100
    with pytest.raises(TooLargeError):
        store.fetch(99)


def test_one_whose_size_nobody_said_is_counted_while_it_is_read(store: Store) -> None:
    """Without a length it ends where the connection does."""
    store.body = b"x" * 100
    assert store.fetch() == b"x" * 100
    with pytest.raises(TooLargeError):
        store.fetch(99)


def test_a_store_that_sends_a_byte_now_and_then_is_read_no_longer_than_the_time_that_there_is(store: Store) -> None:
    """Here it sends one, and nothing more before the reader has given up."""
    store.headers, store.body, store.free = {"Content-Length": "100"}, b"x", threading.Event()
    try:
        with pytest.raises(TimeoutError, match=r"^0 bytes of s3://models/a\.bin were read when the time was up$"):
            store.fetch(is_over=lambda: True)
    finally:
        store.free.set()


def test_a_body_that_ends_early_says_nothing_of_the_model(store: Store) -> None:
    """It is tried again: no message is rejected for a connection that broke."""
    store.headers, store.body = {"Content-Length": "100"}, b"x" * 50
    entry = message("reload-model", {"name": "a", "uri": "s3://models/a.bin", "sha256": "0" * 64})
    fetch = fetcher(store.place, lambda: Credentials("key", "secret"), size_limit=100)
    with pytest.raises(Exception, match="50"):
        inspected(entry, fetch, ModelSettings(("s3://models/",)))


def test_a_message_that_names_a_bucket_that_does_not_answer_is_rejected_and_the_next_one_comes() -> None:
    uri = "s3://models/a.bin"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = Storage("s3://models/app", f"http://127.0.0.1:{silent.getsockname()[1]}", path_style_access=True)
        fetch = fetcher(place, lambda: Credentials("key", "secret"), size_limit=100)
        operations = FakeOperations(
            checks={"reload-model": lambda entry: inspected(entry, fetch, ModelSettings(("s3://models/",)))}
        )
        buckets = Buckets()
        service = MessageService(lambda: repository_in(buckets), operations, Declared(), message_seconds=0.2)
        service.check()
        payload = json.dumps({"name": "a", "uri": uri, "sha256": "0" * 64})
        service.give(ControlOrders((ControlOrder("silent", "reload-model", payload), ControlOrder("next", "ping"))))
        service.check()
    first, following = service.report().messages
    assert (first.state, first.reason) == (MessageState.REJECTED, "MessageTimedOut")
    assert (following.id, following.state) == ("next", MessageState.DONE)


@pytest.mark.parametrize("status", [301, 302, 307])
def test_an_answer_that_says_to_look_elsewhere_is_not_followed(store: Store, status: int) -> None:
    store.status = status
    elsewhere = f"{store.place.endpoint}/other/a.bin"
    store.headers = {"Location": elsewhere, "x-amz-bucket-region": "eu-west-3", "Content-Length": "0"}
    with pytest.raises(ClientError):
        store.fetch()
    assert store.asked == ["GET /models/a.bin"]


def test_a_message_that_names_a_model_of_another_region_is_rejected(store: Store) -> None:
    store.status, store.headers = 301, {"x-amz-bucket-region": "eu-west-3", "Content-Length": "0"}
    entry = message("reload-model", {"name": "a", "uri": "s3://models/a.bin", "sha256": "0" * 64})
    fetch = fetcher(store.place, lambda: Credentials("key", "secret"), size_limit=100)
    assert inspected(entry, fetch, ModelSettings(("s3://models/",))).reason == "ModelNotFound"
