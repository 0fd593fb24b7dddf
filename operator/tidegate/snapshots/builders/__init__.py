"""Pods for snapshots, and the StreamSnapshots that nobody asked for by hand, as dictionaries. No I/O."""
