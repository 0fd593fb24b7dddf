"""Digests are renewed by skopeo from a registry: a stand-in on 127.0.0.1 with the parts of the distribution API that a
client needs to resolve a tag (`/v2/`, tokens, manifests by tag and digest, errors).
"""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from supply_chain import base_images
from supply_chain.base_images import LOCK, UnreachableError

OLD = f"sha256:{'1' * 64}"
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
TOKEN = base64.b64encode(b"for this repository").decode()


def index(remark: str) -> bytes:
    """Return an index whose bytes no client would write in the same way again: spaces count, too."""
    entry = {"mediaType": MANIFEST_TYPE, "size": 2, "digest": OLD}
    manifests = [{**entry, "platform": {"os": "linux", "architecture": a}} for a in ("amd64", "arm64")]
    content = {"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": manifests, "annotations": {"of": remark}}
    return json.dumps(content, indent=3).encode()


class Registry:
    """Serve the tags of repositories; `contents` may change while it runs."""

    def __init__(self) -> None:
        self.contents: dict[tuple[str, str], bytes] = {}
        self.asked: list[str] = []
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.answer(self)

            def do_HEAD(self) -> None:
                registry.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        path = request.path.partition("?")[0]
        self.asked.append(request.path)
        if path == "/token":
            return self.send(request, 200, "application/json", json.dumps({"token": TOKEN}).encode())
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            challenge = f'Bearer realm="http://{self.address}/token",service="registry"'
            return self.send(request, 401, "application/json", b'{"errors": []}', {"WWW-Authenticate": challenge})
        if path == "/v2/":
            return self.send(request, 200, "application/json", b"{}")
        repository, _, reference = path.removeprefix("/v2/").partition("/manifests/")
        content = self.contents.get((repository, reference))
        if content is None:
            return self.send(request, 404, "application/json", b'{"errors": [{"code": "MANIFEST_UNKNOWN"}]}')
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        return self.send(request, 200, INDEX_TYPE, content, {"Docker-Content-Digest": digest})

    @staticmethod
    def send(
        request: BaseHTTPRequestHandler, status: int, kind: str, content: bytes, more: dict[str, str] | None = None
    ) -> None:
        request.send_response(status)
        headers = {"Content-Type": kind, "Content-Length": str(len(content)), **(more or {})}
        headers["Docker-Distribution-Api-Version"] = "registry/2.0"
        for name, value in headers.items():
            request.send_header(name, value)
        request.end_headers()
        if request.command != "HEAD":
            request.wfile.write(content)


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """Have skopeo's configuration, in a home of its own, name the stand-in as the mirror of the registry."""
    made = Registry()
    mirror = tmp_path / ".config" / "containers" / "registries.conf"
    mirror.parent.mkdir(parents=True)
    mirror.write_text(f'[[registry]]\nprefix = "docker.io"\nlocation = "{made.address}"\ninsecure = true\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    yield made
    made.close()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    (root / "images" / "spark").mkdir(parents=True)
    (root / LOCK).write_text(f"debian:12-slim@{OLD}\n")
    (root / "images" / "spark" / "Dockerfile").write_text(f"ARG BASE=debian:12-slim@{OLD}\nFROM $BASE\n")
    return root


def test_the_digest_is_that_of_the_bytes_which_the_registry_has_under_the_tag(
    registry: Registry, checkout: Path
) -> None:
    for remark in ("first", "moved"):
        content = index(remark)
        registry.contents["library/debian", "12-slim"] = content
        assert len(base_images.renew(checkout, base_images.ask_registry)) == 1
        expected = f"debian:12-slim@sha256:{hashlib.sha256(content).hexdigest()}"
        assert (checkout / LOCK).read_text() == f"{expected}\n"
        assert f"ARG BASE={expected}\n" in (checkout / "images" / "spark" / "Dockerfile").read_text()
    assert any(path.startswith("/token?") for path in registry.asked)


def test_a_tag_that_the_registry_does_not_have_changes_nothing(registry: Registry, checkout: Path) -> None:
    with pytest.raises(UnreachableError, match=r"debian:12-slim: .*manifest unknown"):
        base_images.renew(checkout, base_images.ask_registry)
    assert (checkout / LOCK).read_text() == f"debian:12-slim@{OLD}\n"


def test_a_registry_that_is_not_there_changes_nothing(registry: Registry, checkout: Path) -> None:
    registry.close()
    with pytest.raises(UnreachableError, match=r"debian:12-slim: .*connection refused"):
        base_images.renew(checkout, base_images.ask_registry)
    assert (checkout / LOCK).read_text() == f"debian:12-slim@{OLD}\n"
