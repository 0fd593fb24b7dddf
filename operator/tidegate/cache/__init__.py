"""The index of applications, pods and storage roots; each slice has an index of its own beside it.

The index is in memory. Modules that watch, read, report or act do I/O, and say so.
"""
