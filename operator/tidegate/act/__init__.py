"""Carries plans out. Does I/O."""
