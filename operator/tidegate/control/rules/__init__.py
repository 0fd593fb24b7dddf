"""Decisions about ControlMessages. No I/O."""
