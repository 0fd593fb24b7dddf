"""The StreamSnapshot controller: snapshots are taken, verified, exported, retained and deleted.

Design: docs/design/snapshots.md.
"""
