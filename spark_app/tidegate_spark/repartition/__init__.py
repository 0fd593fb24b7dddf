"""Repartitions state: makes a lineage with another number of partitions from one that has ended. Does I/O.

Design: docs/design/repartitioning.md.
"""
