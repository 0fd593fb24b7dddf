"""The autoscaler: from drivers' reports to the number of executors that an application needs.

Only ``quotas`` asks the API server; everything else works in memory.

Design: docs/design/autoscaling.md.
"""
