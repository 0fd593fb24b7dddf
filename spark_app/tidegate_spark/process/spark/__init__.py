"""Spark's settings, and where PySpark is: what a process knows before a JVM runs."""
