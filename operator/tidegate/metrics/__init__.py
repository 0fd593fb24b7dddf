"""Prometheus metrics of the operator's own life: reconciles, API requests, queue, phases. Queries are the agents'.

Design: docs/design/metrics-and-alerts.md.
"""
