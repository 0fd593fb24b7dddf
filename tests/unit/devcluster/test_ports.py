"""Ports that are given away: each once on the machine, and free."""

import random
import socket
import subprocess
import sys

import pytest

from devcluster import control, paths
from devcluster.control import ComponentError, free_port


def test_no_port_is_given_twice_and_each_can_be_listened_on() -> None:
    ports = [free_port() for _ in range(40)]
    assert len(set(ports)) == len(ports)
    for port in ports:
        socket.create_server(("127.0.0.1", port)).close()


def test_what_one_process_was_given_no_other_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import sys; from devcluster.control import free_port; print(free_port(), flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=paths.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        port = int(other.stdout.readline())
        monkeypatch.setattr(control, "_PORTS", range(port, port + 1))
        monkeypatch.setattr(random, "sample", lambda ports, _: list(ports))
        with pytest.raises(ComponentError, match="is free"):
            free_port()
        other.communicate()
    assert free_port() == port
