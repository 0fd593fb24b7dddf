"""ControlMessages: given to drivers, and what came of them.

Design: docs/design/control-messages.md.
"""
