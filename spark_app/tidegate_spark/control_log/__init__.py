"""The control log: what was sent to an application, in its own storage, and what is in force at each position of it.

It lies below snapshots, which keep a part of it, and below :mod:`tidegate_spark.control`, which steers by it.

Design: docs/design/control-stream.md.
"""
