"""Upgrades and rollbacks: one record in the status, changed one step at a time.

Design: docs/design/upgrades.md.
"""
