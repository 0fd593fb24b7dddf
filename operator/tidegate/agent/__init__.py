"""The client of drivers' agents, and the pollers of drivers and helper pods. Does I/O.

Design: docs/design/agent-keys.md.
"""
