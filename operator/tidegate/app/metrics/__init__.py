"""The operator's metrics about applications and their changes. No I/O.

Design: docs/design/metrics-and-alerts.md.
"""
