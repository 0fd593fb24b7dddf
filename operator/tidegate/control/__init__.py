"""The ControlMessage controller: sends messages to drivers and reports their results.

``rules`` and ``builders`` are pure; ``controller``, ``reconcile`` and ``act`` do I/O.

Design: docs/design/control-messages.md.
"""
