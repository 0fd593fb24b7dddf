"""What every controller is built from: queue, back-off, supervision, events. Knows no kind of resource.

Design: docs/design/operator-loop.md.
"""
