"""The operator's metrics about applications and their changes.

Design: docs/design/metrics-and-alerts.md.
"""
