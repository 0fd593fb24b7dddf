"""The autoscaler: from drivers' reports to the number of executors that an application needs.

Design: docs/design/autoscaling.md.
"""
