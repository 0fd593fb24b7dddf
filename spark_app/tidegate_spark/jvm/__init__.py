"""Spark's JVM and its session, also started ahead of use. Starts processes, does I/O."""
