"""Snapshots of an application's checkpoints, in the application's own bucket: taken, restored, collected.

``checkpoint/`` reads a Spark checkpoint, ``catalog`` decides what is needed and what may go, ``repository`` is the
place of both. ``take``, ``restore`` and ``collect`` do the work. ``service/`` has the orders about it, ``lineages/``
what stands beside lineages, ``purge/`` deletes all of it.

What ``take`` expects of ``checkpoint/layout`` is in :mod:`tidegate_spark.snapshots.checkpoint.reader`.

Design: docs/design/snapshots.md.
"""
