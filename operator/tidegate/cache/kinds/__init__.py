"""Resources of one kind: watched, indexed by key and by application, and reported if they cannot be decoded."""
