"""Messages: why a snapshot cannot be taken. No I/O."""

from __future__ import annotations

from collections.abc import Sequence


def catalog_lost(key: str) -> str:
    return (
        f"{key} is gone, and there are snapshots. Without it, none is taken or deleted: restore it from an older "
        "object version in the bucket, or from a backup."
    )


def endpoint_unusable(endpoint: str, error: Exception) -> str:
    return f"{endpoint} (endpoint): {error}."


def cleaned_too_fast(attempts: int, error: Exception) -> str:
    return (
        f"Spark removed files under {attempts} attempts to copy them, the last time: {error}. With a larger "
        "spec.state.minBatchesToRetain it keeps them longer."
    )


def not_whole(snapshot: str, wrong: Sequence[str]) -> str:
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    return f"snapshot {snapshot} is not whole: {wrong[0]}{more}."
