"""Repartitions the state of an application: makes a lineage with another number of partitions of one that has ended.

Design: docs/design/repartitioning.md.
"""
