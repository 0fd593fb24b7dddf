"""An application's ServiceAccount and roles, its Secrets, and the operator's key.

Design: docs/design/agent-keys.md.
"""
