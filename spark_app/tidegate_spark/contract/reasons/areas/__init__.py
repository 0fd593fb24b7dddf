"""The entries of the reasons, by area. No I/O."""
