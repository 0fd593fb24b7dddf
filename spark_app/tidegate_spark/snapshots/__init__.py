"""Snapshots of an application's checkpoints in its bucket: taken, restored, collected.

``checkpoint/`` reads a Spark checkpoint, ``catalog`` decides what is needed and what may be deleted, ``repository``
stores both. ``take``, ``restore`` and ``collect`` do the work; ``service/`` has the orders, ``lineages/`` the objects
beside lineages, ``purge/`` deletes everything.

Design: docs/design/snapshots.md.
"""
