"""From what drivers report to how many executors an application needs; knows nothing of Kubernetes.

Design: docs/design/autoscaling.md.
"""
