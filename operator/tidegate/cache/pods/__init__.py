"""Pods: watched, read live where the watch is not enough, created, deleted, and entered in the index. Does I/O."""
