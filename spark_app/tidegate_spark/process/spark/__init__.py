"""Spark's settings, and where PySpark is, before a JVM runs."""
