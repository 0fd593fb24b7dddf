"""The driver's process, from start to end. Does I/O."""
