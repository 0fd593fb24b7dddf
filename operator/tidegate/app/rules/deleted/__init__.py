"""Rules for a deleted application: final snapshot, pods, storage. No I/O."""
