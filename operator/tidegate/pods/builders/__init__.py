"""Parts of pods that several kinds of pods share, as dictionaries. No I/O, no clock, no randomness."""
