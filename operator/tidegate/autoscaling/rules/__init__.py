"""Reads the autoscaler's settings and its memory. No I/O."""
