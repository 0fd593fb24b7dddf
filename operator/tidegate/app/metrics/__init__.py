"""What is shown of each application, and what became of its changes.

Design: docs/design/metrics-and-alerts.md.
"""
