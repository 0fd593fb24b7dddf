"""Orders about snapshots: taken in, queued, carried out and reported, in a driver or in a pod of their own."""
