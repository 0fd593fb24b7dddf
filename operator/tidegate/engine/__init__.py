"""What each controller is made of: queue, back-off, supervision, events. Knows no kind of resource.

Design: docs/design/operator-loop.md.
"""
