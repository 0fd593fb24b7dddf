"""Another version takes over, and is rolled back if it fails: one record in the status, changed a step at a time.

Design: docs/design/upgrades.md.
"""
