"""The few API calls that starting a cluster needs; cheaper to load than a full client. Does network I/O."""

import base64
import http.client
import json
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Object = Mapping[str, Any]


class ApiRefusedError(OSError):
    """The API server answered with an error; ``status`` is the HTTP status."""

    def __init__(self, status: int, text: str) -> None:
        """Keep the status and the server's words."""
        super().__init__(f"API server answered {status}: {text}")
        self.status = status


class ApiClient:
    """Calls one API server by a kubeconfig that this package wrote. Each call is a connection of its own."""

    def __init__(self, kubeconfig: Path) -> None:
        """Read address, authority and token."""
        content = json.loads(kubeconfig.read_text())
        cluster = content["clusters"][0]["cluster"]
        self._host, _, port = cluster["server"].removeprefix("https://").rpartition(":")
        self._port = int(port)
        self._token = content["users"][0]["user"]["token"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._tls = ssl.create_default_context(cadata=authority)

    def ready(self) -> bool:
        """Say whether the API server serves requests."""
        return self.call("GET", "/readyz") == b"ok"

    def get(self, path: str) -> Any:
        """Return the object or list at ``path``; raise ApiRefusedError or another OSError."""
        return json.loads(self.call("GET", path))

    def exists(self, path: str) -> bool:
        """Say whether there is an object at ``path``."""
        try:
            self.call("GET", path)
        except ApiRefusedError as refused:
            if refused.status == http.HTTPStatus.NOT_FOUND:
                return False
            raise
        return True

    def create(self, path: str, content: Object) -> None:
        """Create an object in the collection at ``path``; one that exists already stays as it is."""
        try:
            self.call("POST", path, content)
        except ApiRefusedError as refused:
            if refused.status != http.HTTPStatus.CONFLICT:
                raise

    def merge(self, path: str, change: Object) -> None:
        """Merge ``change`` into the object at ``path``; raise ApiRefusedError or another OSError."""
        self.call("PATCH", path, change, kind="application/merge-patch+json")

    def call(
        self, method: str, path: str, body: Object | Sequence[Object] | None = None, *, kind: str = "application/json"
    ) -> bytes:
        """Make one request and return the body of the answer; raise ApiRefusedError or another OSError."""
        connection = http.client.HTTPSConnection(self._host, self._port, timeout=30, context=self._tls)
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            content = answer.read()
        except http.client.HTTPException as broken:
            raise ConnectionError(f"API server broke off: {broken!r}") from broken
        finally:
            connection.close()
        if answer.status >= http.HTTPStatus.BAD_REQUEST:
            raise ApiRefusedError(answer.status, content.decode(errors="replace")[:400])
        return content
