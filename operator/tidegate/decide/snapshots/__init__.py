"""Pure decisions about StreamSnapshots, in the same shape as those about applications.

Design: docs/design/snapshots.md.
"""
