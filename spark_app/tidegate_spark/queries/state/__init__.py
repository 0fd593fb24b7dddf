"""Prevents a query from reading its state with other columns than it was written with.

Talks to the JVM and the store, does file I/O.
"""
