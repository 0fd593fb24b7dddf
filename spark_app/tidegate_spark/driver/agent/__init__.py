"""The driver's HTTP server."""
