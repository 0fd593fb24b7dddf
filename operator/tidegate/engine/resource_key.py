"""The key of a resource: namespace and name. No I/O."""

from __future__ import annotations

Key = tuple[str, str]
"""Namespace and name of an application, or of another resource that has a queue of its own."""
