"""A port that anybody can reach: what strangers hold is bounded, and who asks gets an answer. Real sockets."""

import contextlib
import http.client
import itertools
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest

from tidegate_spark.process.serving.framing import LARGEST_HEAD, Head, Refusal
from tidegate_spark.process.serving.handler import Handler
from tidegate_spark.process.serving.limits import Lane, Limits
from tidegate_spark.process.serving.server import Server

FEW = Limits(connections=8, threads=1, long_threads=1, waiting=1)
CLOSED = b""


class Echo(Handler):
    """Answers with the body; ``/held`` waits for the test, ``/broken`` raises."""

    gate: ClassVar[threading.Event]
    begun: ClassVar[threading.Semaphore]

    @classmethod
    def judge(cls, head: Head) -> Refusal | None:
        return Refusal(401, "who are you") if head.path == "/closed" else None

    @classmethod
    def lane(cls, head: Head) -> Lane:
        return {"/now": Lane.AT_ONCE, "/held": Lane.LONG}.get(head.path, Lane.SHORT)

    def do_GET(self) -> None:  # noqa: N802 - the base class's name
        if self.path == "/broken":
            raise RuntimeError("broken")
        if self.path == "/held":
            self.begun.release()
            assert self.gate.wait(30)
        self.answer(200, self.path)

    def do_POST(self) -> None:  # noqa: N802 - the base class's name
        self.answer(200, self.rfile.read())


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Starts servers; all are closed at the end."""
    servers = list[Server]()
    gate = threading.Event()

    def start(limits: Limits = FEW) -> Server:
        handler = type("Echo", (Echo,), {"gate": gate, "begun": threading.Semaphore(0)})
        servers.append(Server("127.0.0.1", 0, handler, limits))
        servers[-1].start()
        return servers[-1]

    yield start
    gate.set()
    for server in servers:
        server.close()


@contextlib.contextmanager
def connected(server: Server) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as made:
        yield made


def ask(server: Server, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    with contextlib.closing(connection):
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()


def rest_of(line: socket.socket) -> bytes:
    """Return all that comes until the other side closes."""
    with contextlib.suppress(ConnectionError):
        return b"".join(iter(lambda: line.recv(65536), CLOSED))
    return CLOSED


def test_requests_are_answered_one_after_the_other_over_one_connection(serve: Any) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", serve().port, timeout=30)
    with contextlib.closing(connection):
        for path in ("/now", "/short", "/now"):
            connection.request("GET", path)
            assert connection.getresponse().read() == path.encode()
        connection.request("POST", "/short", b"x" * 4096)
        assert connection.getresponse().read() == b"x" * 4096


def test_a_request_that_comes_byte_by_byte_is_whole_with_its_last_byte(serve: Any) -> None:
    with connected(serve()) as line:
        for byte in b"POST /short HTTP/1.1\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc":
            line.sendall(bytes([byte]))
        assert rest_of(line).endswith(b"\r\n\r\nabc")


@pytest.mark.parametrize("began", [b"", b"GET /short HT", b"POST /short HTTP/1.1\r\nContent-Length: 9\r\n\r\nab"])
def test_who_does_not_finish_a_request_is_cut(serve: Any, began: bytes) -> None:
    with connected(serve(Limits(request_seconds=0.2))) as line:
        line.sendall(began)
        assert rest_of(line) == CLOSED


def trickle(line: socket.socket) -> int:
    """Send a byte every few milliseconds until the other side closes; return how many were sent."""
    line.settimeout(0.02)
    with contextlib.suppress(ConnectionError):
        for sent in itertools.count(1):
            line.sendall(b"a")
            with contextlib.suppress(TimeoutError):
                if line.recv(1) == CLOSED:
                    return sent
    return sent


def test_a_client_that_trickles_is_cut_although_it_never_pauses(serve: Any) -> None:
    with connected(serve(Limits(request_seconds=0.5))) as line:
        assert 1 < trickle(line) < LARGEST_HEAD


def test_a_connection_that_is_kept_for_nothing_is_closed_and_one_that_may_be_is_kept(serve: Any) -> None:
    short, long = serve(Limits(idle_seconds=0.2)), serve(Limits(idle_seconds=None, request_seconds=0.2))
    with connected(short) as closed, connected(long) as kept:
        for line in (closed, kept):
            line.sendall(b"GET /now HTTP/1.1\r\n\r\n")
            assert line.recv(65536).endswith(b"/now")
        assert rest_of(closed) == CLOSED
        kept.sendall(b"GET /now HTTP/1.1\r\n\r\n")
        assert kept.recv(65536).endswith(b"/now")
        kept.sendall(b"GET /n")
        assert rest_of(kept) == CLOSED


REFUSED = {
    "a long line": (b"GET /" + b"a" * LARGEST_HEAD, 431),
    "long headers": (b"GET / HTTP/1.1\r\nA: " + b"a" * LARGEST_HEAD, 431),
    "many headers": (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 101 + b"\r\n", 431),
    "a long body": (b"POST / HTTP/1.1\r\nContent-Length: 4097\r\n\r\n", 413),
    "a body of 5,000 digits": (b"POST / HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", 411),
    "two lengths": (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 411),
    "pieces": (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
    "no HTTP": (b"\x16\x03\x01\x02\x00\r\n\r\n", 400),
    "a stranger's body": (b"POST /closed HTTP/1.1\r\nContent-Length: 4096\r\n\r\n", 401),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_too_long_or_unclear_is_refused_before_it_is_read(serve: Any, what: str) -> None:
    sent, status = REFUSED[what]
    with connected(serve()) as line:
        line.sendall(sent)
        assert rest_of(line).startswith(f"HTTP/1.1 {status} ".encode())


def test_a_client_that_waits_before_it_sends_its_body_is_told_to_go_on(serve: Any) -> None:
    with connected(serve()) as line:
        line.sendall(b"POST /short HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n")
        assert line.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        line.sendall(b"ab")
        assert rest_of(line).endswith(b"\r\n\r\nab")


def test_when_no_thread_is_free_some_requests_wait_and_the_next_is_told_so(serve: Any) -> None:
    server = serve()
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(connected(server)) for _ in range(2)]
        held[0].sendall(b"GET /held HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert server.handler.begun.acquire(timeout=30)
        held[1].sendall(b"GET /held HTTP/1.1\r\nConnection: close\r\n\r\n")
        with connected(server) as third:
            # Sent after the second by the same thread of the same process: it is read after it, too.
            third.sendall(b"GET /held HTTP/1.1\r\n\r\n")
            said = rest_of(third)
        assert (said.startswith(b"HTTP/1.1 503 "), b"Retry-After: 1" in said) == (True, True)
        assert ask(server, "GET", "/short") == (200, b"/short")
        server.handler.gate.set()
        assert [rest_of(line)[-5:] for line in held] == [b"/held", b"/held"]


def test_a_handler_that_fails_ends_its_connection_and_nothing_else(serve: Any) -> None:
    server = serve()
    with connected(server) as line:
        line.sendall(b"GET /broken HTTP/1.1\r\n\r\n")
        assert rest_of(line) == CLOSED
    assert ask(server, "GET", "/short") == (200, b"/short")


def test_one_connection_too_many_takes_the_place_of_the_oldest_that_has_asked_nothing(serve: Any) -> None:
    server = serve()
    with contextlib.ExitStack() as stack:
        held = stack.enter_context(connected(server))
        held.sendall(b"GET /held HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert server.handler.begun.acquire(timeout=30)
        slow = [stack.enter_context(connected(server)) for _ in range(FEW.connections)]
        assert rest_of(slow[0]) == CLOSED
        slow[1].sendall(b"GET /now HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert rest_of(slow[1]).endswith(b"/now")
        server.handler.gate.set()
        assert rest_of(held).endswith(b"/held")


def test_who_takes_no_answer_is_cut(serve: Any) -> None:
    server = serve(Limits(answer_seconds=0.2))
    server.handler.do_GET = lambda handler: handler.answer(200, b"x" * 32 * 1024 * 1024)
    with connected(server) as line:
        line.sendall(b"GET /short HTTP/1.1\r\n\r\n")
        line.recv(1)
        threading.Event().wait(0.5)
        assert len(rest_of(line)) < 32 * 1024 * 1024


def test_limits_that_leave_no_room_for_a_probe_are_refused() -> None:
    with pytest.raises(ValueError, match="34 requests can be under way"):
        Limits(connections=34, threads=2, waiting=32)


def test_a_port_that_is_closed_is_free_again(serve: Any) -> None:
    server = serve()
    with connected(server) as line:
        assert ask(server, "GET", "/now")[0] == 200
        server.close()
        assert rest_of(line) == CLOSED
    again = Server("127.0.0.1", server.port, Echo, FEW)
    again.close()
