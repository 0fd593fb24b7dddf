"""Decisions about StreamSnapshots, in the same shape as those about applications. No I/O."""
