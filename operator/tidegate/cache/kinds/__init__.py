"""Resources of one kind: watched, kept by key and by application, and reported where they cannot be read."""
