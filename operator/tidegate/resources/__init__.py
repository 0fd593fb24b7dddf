"""Pure builders of Kubernetes objects: values in, whole dictionaries out. No I/O, no clock, no randomness.

Design: docs/design/pods-and-templates.md.
"""
