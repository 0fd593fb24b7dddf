"""The control log: an application's messages in its storage, and what is in force at each position.

I/O only in ``log``, ``log_reader`` and ``log_objects``, by the object store's port.

:mod:`tidegate_spark.snapshots` keeps a part of it, and :mod:`tidegate_spark.control` acts by it.

Design: docs/design/control-stream.md.
"""
