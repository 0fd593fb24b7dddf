"""Those objects as dictionaries. No I/O."""
