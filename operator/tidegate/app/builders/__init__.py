"""An application's own pods, as dictionaries. No I/O, no clock, no randomness.

Design: docs/design/pods-and-templates.md.
"""
