"""Listens on the port of Tidegate's metrics."""

import http.server
import os

http.server.HTTPServer(("0.0.0.0", int(os.environ["TIDEGATE_STATUS_PORT"])), http.server.BaseHTTPRequestHandler)
