"""The version of Tidegate that writes stored forms. No I/O: images have no distribution metadata."""

VERSION = "0.1.0"
"""The distribution's; a test compares the two."""
