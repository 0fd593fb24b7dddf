"""Divides the state of an application anew: makes a lineage with another number of partitions of one that has ended."""
