"""Records of pods: contents, owner, faults. No I/O."""
