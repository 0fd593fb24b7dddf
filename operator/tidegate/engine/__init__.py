"""What every controller is built from: queue, back-off, supervision, events. Knows no kind of resource.

Each module says whether it does I/O.

Design: docs/design/operator-loop.md.
"""
