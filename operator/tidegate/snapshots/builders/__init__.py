"""Builds pods for snapshots, and the StreamSnapshots that Tidegate creates, as dictionaries. No I/O."""
