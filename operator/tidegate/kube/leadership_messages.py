"""Messages: why a process does not lead any more. No I/O."""

from __future__ import annotations

LEASE_DELETED = "the Lease was deleted"
LEASE_RESTORED = "the Lease is older than it was: the API server's objects were restored from a backup"


def lease_names(holder: str) -> str:
    return f"the Lease names {holder}"


def not_renewed(seconds: float) -> str:
    return f"not renewed for {seconds:g} s"
