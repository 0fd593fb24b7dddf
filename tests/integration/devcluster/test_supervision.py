"""The supervisor and the processes below it."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.control import ComponentError, Control, Forward, free_listener
from devcluster.processes import ProcessIdentity
from tidegate_testing.waiting import wait_for


@pytest.fixture
def control(tmp_path: Path) -> Iterator[Control]:
    made = Control(tmp_path / "state")
    yield made
    made.wipe()


def test_a_component_that_ends_is_named_with_the_end_of_its_log(control: Control) -> None:
    control.launch()
    control.start("broken", ["sh", "-c", "echo no such luck; exit 3"])
    with pytest.raises(ComponentError, match=r"broken ended with code 3.*\nno such luck"):
        control.until("broken", lambda: False, timeout=180)


def test_a_component_that_ignores_the_polite_signal_is_killed(control: Control) -> None:
    control.launch()
    control.start("stubborn", ["sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 1; done"])
    control.until("stubborn", lambda: "deaf" in control.log("stubborn").read_text(), timeout=180)
    control.stop("stubborn", grace=0.1)
    assert control.components()["stubborn"]["code"] == -9


def test_a_component_that_ended_is_started_again_with_the_same_arguments(control: Control) -> None:
    control.launch()
    first = control.start("greeter", ["sh", "-c", "echo good $time; sleep 1000"], env={"time": "morning"})
    control.until("greeter", lambda: "good morning\n" in control.log("greeter").read_text(), timeout=180)
    control.stop("greeter", grace=0)
    second = control.start_again("greeter")
    assert second != first
    control.until("greeter", lambda: "good morning\ngood morning\n" in control.log("greeter").read_text(), timeout=180)
    with pytest.raises(ComponentError, match="never started"):
        control.start_again("stranger")


def test_components_end_when_their_supervisor_is_killed(control: Control) -> None:
    control.launch()
    component = ProcessIdentity.of(control.start("sleeper", ["sleep", "1000"]))
    supervisor = control.identity()
    assert supervisor is not None
    supervisor.kill()
    wait_for("the end of the component", lambda: not component.alive(), timeout=180)


def test_a_bound_supervisor_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    code = (
        "import os, pathlib, sys; from devcluster.control import Control; "
        "Control(pathlib.Path(sys.argv[1])).launch(bound=True); os._exit(1)"
    )
    subprocess.run([sys.executable, "-c", code, folder], check=False, cwd=Path(__file__).parents[3])
    identity = Control(folder).identity()
    assert identity is not None
    wait_for("the end of the supervisor", lambda: not identity.alive(), timeout=180)


def test_a_forwarded_connection_reaches_its_target_and_a_stopped_target_closes_it(control: Control) -> None:
    target = free_listener()
    listener = free_listener()
    control.launch([Forward(listener, "127.0.0.1", target.getsockname()[1])])
    address = listener.getsockname()
    listener.close()
    with socket.create_connection(address, timeout=60) as near:
        far, _ = target.accept()
        with far:
            near.sendall(b"question")
            near.shutdown(socket.SHUT_WR)
            assert far.makefile("rb").read() == b"question"
            far.sendall(b"answer")
        assert near.makefile("rb").read() == b"answer"
    target.close()
    with socket.create_connection(address, timeout=60) as near:
        assert near.recv(1) == b""


def test_an_identity_is_not_that_of_a_later_process_with_the_same_number() -> None:
    mine = ProcessIdentity.of(os.getpid())
    assert mine.alive()
    assert not ProcessIdentity(mine.pid, mine.start - 1, mine.boot).alive()
    assert not ProcessIdentity(mine.pid, mine.start, "another boot").alive()
