"""What pods of several kinds have in common, as dictionaries. No I/O, no clock, no randomness."""
