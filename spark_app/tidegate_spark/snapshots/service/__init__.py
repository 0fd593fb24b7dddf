"""Orders about snapshots: received, queued, carried out and reported, in a driver or a pod. I/O by the repository."""
