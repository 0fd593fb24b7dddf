"""How a driver reaches the API server while its script has variables of its own."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import botocore
import pytest

from tidegate_spark.executors import pods_api
from tidegate_spark.executors.pods_api import PodsApi
from tidegate_spark.storage import start_variables


class NoPods(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"items": []}')

    def log_message(self, *_: object) -> None:
        """Keep the test's output quiet."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """The address of an API server without pods, reached without a proxy."""
    for name in ("HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "ca.crt").write_bytes(Path(botocore.__file__).with_name("cacert.pem").read_bytes())
    (tmp_path / "token").write_text("token")
    monkeypatch.setattr(pods_api, "SERVICE_ACCOUNT_DIRECTORY", str(tmp_path))
    monkeypatch.setattr(start_variables, "_noted", [])
    with ThreadingHTTPServer(("127.0.0.1", 0), NoPods) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()


def test_a_script_s_proxy_is_not_the_way_to_the_api_server(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    start_variables.note()
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    assert PodsApi("here", server).list("spark-role=executor") == {"items": []}


def test_a_proxy_of_the_pod_is(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", server)
    start_variables.note()
    monkeypatch.delenv("HTTP_PROXY")
    assert PodsApi("here", "http://nowhere.invalid").list("spark-role=executor") == {"items": []}
