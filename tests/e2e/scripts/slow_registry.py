"""A registry of images that sends each manifest byte by byte, until it ends after 15 minutes. Argument: the port, of
this machine only."""

import hashlib
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SIZE = 100_000
DIGEST = "sha256:" + hashlib.sha256(b" " * SIZE).hexdigest()


class Registry(BaseHTTPRequestHandler):
    """Just as much of a registry as is asked before an image is there."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        """Say that there is such an image."""
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.docker.distribution.manifest.v2+json")
        self.send_header("Docker-Content-Digest", DIGEST)
        self.send_header("Content-Length", str(SIZE))
        self.end_headers()

    def do_GET(self) -> None:
        """Send it, slowly."""
        self.do_HEAD()
        for _ in range(SIZE):
            self.wfile.write(b" ")
            time.sleep(1)


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Registry)
# A kubelet may pull one image after the other: whoever forgets this one must not keep it from all others.
threading.Timer(900, os._exit, (0,)).start()
print("serves", flush=True)
server.serve_forever()
