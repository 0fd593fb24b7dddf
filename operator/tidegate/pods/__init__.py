"""Pods as records and as manifests, for every slice. No I/O.

Design: docs/design/pods-and-templates.md.
"""
