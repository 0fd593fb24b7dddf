"""Pods: watched, read where the watch does not suffice, created and deleted, each noted in the index. Does I/O."""
