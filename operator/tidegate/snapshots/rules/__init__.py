"""Decides about StreamSnapshots, in the same form as about applications. No I/O."""
