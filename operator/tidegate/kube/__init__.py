"""Requests to the Kubernetes API server; nothing else in the operator imports a Kubernetes client. Does I/O.

Design: docs/design/operator-loop.md.
"""
