"""The index of applications, pods and storage roots; each slice has an index of its own beside it.

The index is in memory; watches and the acts on pods do I/O.
"""
