"""An object store with a fault: it answers every request alike, or takes no notice of conditions on writes."""

import hashlib
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

FAULTS = {"throttling": (503, "SlowDown"), "expired": (400, "ExpiredToken")}
way, objects = sys.argv[1], dict[str, bytes]()


class Store(BaseHTTPRequestHandler):
    """Just as much of S3 as a driver asks for before it starts."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Return an object, or an empty list of objects."""
        path = urlsplit(self.path)
        if "list-type" in path.query:
            self.answer(200, "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>")
        elif path.path in objects:
            self.answer(200, objects[path.path].decode())
        else:
            self.answer(404, "<Error><Code>NoSuchKey</Code></Error>")

    def do_PUT(self) -> None:
        """Write an object, whatever the condition says."""
        objects[urlsplit(self.path).path] = body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer(200, "", {"ETag": f'"{hashlib.md5(body).hexdigest()}"'})

    def do_DELETE(self) -> None:
        """Delete an object."""
        objects.pop(urlsplit(self.path).path, None)
        self.answer(204)

    def answer(self, status: int, text: str = "", headers: dict[str, str] | None = None) -> None:
        """Send an answer, or the one fault that the store has."""
        if way in FAULTS:
            status, code = FAULTS[way]
            text = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>"
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(text.encode()))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())


ThreadingHTTPServer(("", 9000), Store).serve_forever()
