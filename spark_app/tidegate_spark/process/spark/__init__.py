"""Spark's settings, and where PySpark is, before a JVM runs. No I/O, but for looking at files."""
