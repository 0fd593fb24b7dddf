"""The driver's HTTP server. Does I/O."""
