"""Snapshots of an application's checkpoints, in the application's own bucket: taken, restored, collected.

``layout`` reads a Spark checkpoint, ``catalog`` decides what is needed and what may go, ``library`` is the place of
both. ``take``, ``restore`` and ``collect`` do the work.

What ``take`` expects of ``layout`` is in :mod:`tidegate_spark.snapshots.checkpoint.reader`.

Design: docs/design/snapshots.md.
"""
