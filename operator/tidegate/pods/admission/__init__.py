"""Refusals of a pod by the API server, as messages about the spec that it was made of. No I/O."""
