"""No default of the script's process limits a call between Python and the JVM. Real sockets, no JVM."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkConf

from tidegate_spark.jvm import launching
from tidegate_spark.jvm.jvm_prestart import Door
from tidegate_testing.waiting import wait_for

LIMIT_SECONDS = 0.05
CALL_SECONDS = 0.2
CALL = "c\no0\nstop\ne\n"
"""Of py4j's protocol: a method of an object, and the end of the arguments."""


class _Jvm:
    """Java's end: answers each command with a success, after a while if it is a call."""

    def __init__(self) -> None:
        self._door = socket.create_server(("127.0.0.1", 0))
        self._door.settimeout(None)
        self.port = int(self._door.getsockname()[1])
        self.calls = 0
        self.closed = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self.closed.set()
        self._door.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._door.accept()
            except OSError:
                return
            connection.settimeout(None)
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as lines:
            first = b""
            for line in lines:
                first = first or line
                if line == b"e\n" or (first == b"A\n" and line != b"A\n"):
                    if first == b"c\n":
                        self.calls += 1
                        self.closed.wait(CALL_SECONDS)
                    with contextlib.suppress(OSError):  # it is waited for no more
                        connection.sendall(b"!yv\n")
                    first = b""


def connect(port: int) -> socket.socket:
    """Return a connection of the JVM to Python, whose server listens a moment after its start."""
    found: list[socket.socket] = []

    def tried() -> bool:
        with contextlib.suppress(ConnectionRefusedError):
            found.append(socket.create_connection(("127.0.0.1", port), timeout=10))
        return bool(found)

    wait_for("Python's server", tried, 60, 0.01)
    return found[0]


class _Ahead:
    """A JVM that was started ahead and is up."""

    def __init__(self, port: int) -> None:
        self._port = port

    def await_up(self, digest: str) -> Door:
        return Door(self._port, "secret")

    def hand_over(self) -> None:
        return None


@pytest.fixture
def jvm() -> Iterator[_Jvm]:
    """Java's end of the gateway."""
    jvm = _Jvm()
    yield jvm
    jvm.close()


@pytest.fixture
def limit() -> Iterator[None]:
    """A script has a limit for its own requests."""
    socket.setdefaulttimeout(LIMIT_SECONDS)
    yield
    socket.setdefaulttimeout(None)


@pytest.fixture
def gateway(limit: None, jvm: _Jvm, tmp_path: Path) -> Any:
    """The driver's, made after the script has set its limit."""
    ahead: Any = _Ahead(jvm.port)
    return launching.launch(SparkConf(loadDefaults=False), str(tmp_path), frozenset(), ahead)


def test_a_call_to_the_jvm_takes_its_time_whatever_limit_the_script_sets_for_its_sockets(
    jvm: _Jvm, gateway: Any
) -> None:
    answers: list[str] = []

    def call() -> None:
        answers.append(gateway._gateway_client.send_command(CALL))

    call()
    thread = threading.Thread(target=call)  # the runtime's, as to stop a query
    thread.start()
    thread.join()
    assert answers == ["yv", "yv"]
    assert jvm.calls == 2
    assert socket.getdefaulttimeout() == LIMIT_SECONDS  # the script's own requests keep theirs


def test_a_function_of_a_batch_is_called_after_a_pause_and_itself_calls_the_jvm_for_long(
    jvm: _Jvm, gateway: Any
) -> None:
    answers: list[str] = []

    class Function:
        def call(self) -> None:
            answers.append(gateway._gateway_client.send_command(CALL))

    name = gateway.gateway_property.pool.put(Function())
    parameters = gateway.callback_server_parameters
    parameters.daemonize = parameters.daemonize_connections = True
    gateway.start_callback_server(parameters)
    try:
        with connect(gateway._callback_server.get_listening_port()) as batches, batches.makefile("rb") as lines:
            jvm.closed.wait(CALL_SECONDS)  # between two batches
            batches.sendall(f"c\n{name}\ncall\ne\n".encode())
            assert lines.readline() == b"c\n"  # the function's call comes in the same thread of the JVM
            while lines.readline() != b"e\n":
                pass
            jvm.closed.wait(CALL_SECONDS)
            batches.sendall(b"!yv\n")
            assert lines.readline() == b"!yn\n"  # it returned nothing
    finally:
        gateway.shutdown_callback_server()
    assert answers == ["yv"]
