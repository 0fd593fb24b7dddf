"""Decides about applications: an observation and the time in, a plan with reasons out. No I/O, no clock."""
