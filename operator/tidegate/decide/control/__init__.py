"""Decisions about ControlMessages. No I/O.

Design: docs/design/control-messages.md.
"""
