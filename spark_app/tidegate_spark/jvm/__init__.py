"""Spark's JVM and its session, also started ahead of use."""
