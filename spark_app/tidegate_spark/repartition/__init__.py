"""Repartitions state: makes a lineage with another number of partitions from one that has ended.

Design: docs/design/repartitioning.md.
"""
