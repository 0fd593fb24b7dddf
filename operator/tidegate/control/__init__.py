"""The ControlMessage controller: sends messages to drivers and reports their results.

Design: docs/design/control-messages.md.
"""
