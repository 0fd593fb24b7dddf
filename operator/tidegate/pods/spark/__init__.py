"""Spark's configuration keys and the division of memory. No I/O."""
