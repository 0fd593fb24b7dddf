"""The StreamSnapshot controller: snapshots are taken, verified, exported, retained and deleted.

``rules`` and ``builders`` are pure; ``controller``, ``reconcile``, ``act`` and ``pods_at_work`` do I/O.

Design: docs/design/snapshots.md.
"""
