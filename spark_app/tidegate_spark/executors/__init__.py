"""Executors: their number, their pods, and the process around each. Talks to the JVM and the API server."""
