"""StreamSnapshots: taken, verified, exported, retained and deleted.

Design: docs/design/snapshots.md.
"""
