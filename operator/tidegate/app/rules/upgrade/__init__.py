"""Upgrades and rollbacks: one record in the status, changed one step at a time. No I/O.

Design: docs/design/upgrades.md.
"""
