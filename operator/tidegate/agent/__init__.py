"""The operator's talk with agents: one client, and those that ask drivers and pods again and again. Does I/O.

Design: docs/design/agent-keys.md.
"""
