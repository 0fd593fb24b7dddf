"""Which Tidegate wrote what is stored. No I/O: in images, the library is without its distribution's metadata."""

VERSION = "0.1.0"
"""The distribution's; a test compares the two."""
