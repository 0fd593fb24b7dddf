"""The autoscaler's algorithm: from drivers' reports to a number of executors; knows nothing of Kubernetes. Pure.

Design: docs/design/autoscaling.md.
"""
