"""An application's ServiceAccount and roles, its Secrets, and the operator's key. Each module says whether it does I/O.

Design: docs/design/agent-keys.md.
"""
