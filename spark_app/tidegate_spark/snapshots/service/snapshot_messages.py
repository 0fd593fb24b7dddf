"""Messages: what a snapshot waits for, and what helps a failed one. No I/O."""

from __future__ import annotations

NOT_BEGUN = "Not begun yet: one order after the other."
STOPPED = "Asked to stop before it was complete."
RESTORE_FILES = "Restore its files from a replica or the bucket's versions."
GOES_LATER = "It goes when they do not need it any more."
RESTORE_OBJECT = "Restore the object."
ALLOW_DELETION = "Let the credentials delete objects."
INCOMPLETE_CHECKPOINT = "The checkpoint is not complete."
UNSOUND_COPIES = "The store does not copy soundly."


def gone(name: str, bucket: str, prefix: str) -> str:
    return f"Snapshot {name} is not in {bucket}/{prefix} any more. Use another one."


def read_back(files: int, size: int, unread: str, unproven: int) -> str:
    """Return the text; ``unread`` is what was not interpreted, empty if all was; ``unproven`` counts files."""
    whole = f". Not interpreted: {unread}." if unread else " and are a whole checkpoint."
    hashes = f" Of {unproven} of them the store has no hash to compare with." if unproven else ""
    return f"{files} files, {size} bytes, were read back{whole}{hashes}"


def stopped_after(files: int, of_files: int) -> str:
    return f"Asked to stop after {files} of {of_files} files."
