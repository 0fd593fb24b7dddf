"""Asks the API server, before an edit stops anything, whether it would accept the new pods. Stores nothing."""
