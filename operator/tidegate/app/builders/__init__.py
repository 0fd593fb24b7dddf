"""Builds an application's pods as dictionaries. No I/O, no clock, no randomness.

Design: docs/design/pods-and-templates.md.
"""
