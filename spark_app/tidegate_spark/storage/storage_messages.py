"""Messages: what a store answers, and whose credentials it refuses. No I/O."""

from __future__ import annotations


def origin_secret_missing(secret: str) -> str:
    return (
        f"Secret {secret!r} of the imported snapshot (spec.storage.credentialsSecretRef of its StreamSnapshot) is "
        "not there, or lacks a key."
    )


def secret_incomplete(secret: str, keys: str) -> str:
    return f"Secret {secret!r} (spec.storage.credentialsSecretRef.name) has no {keys}."


def no_credentials(place: str) -> str:
    return (
        f"No credentials for {place}: spec.storage.credentialsSecretRef.name names no Secret, and the driver's "
        "service account has no identity of the cloud provider."
    )


def not_reached(where: str, field: str, error: Exception) -> str:
    return f"No store can be reached at {where} ({field}): {error}."


def no_answer(where: str, field: str, kind: str, error: Exception) -> str:
    return f"No answer from {where} ({field}): {kind}: {error}."


def no_bucket(place: str, answer: str) -> str:
    return f"There is no {place}: {answer}."


def other_region(place: str, region: str, answer: str) -> str:
    return f"{place} is not in region {region!r} (spec.storage.region): {answer}."


def credentials_refused(place: str, what: str, secret: str, answer: str) -> str:
    return f"{place} {what} of {secret}: {answer}."


def operation_missing(place: str, answer: str) -> str:
    return f"The store of {place} lacks an operation Tidegate needs: {answer}."


def store_answers(place: str, answer: str) -> str:
    return f"{place} answers {answer}."


def notes_damaged(key: str, lineage: int, error: Exception) -> str:
    return f"{key} is damaged ({error}): it says which query has which checkpointLocation in lineage {lineage}"


def no_unnamed_query(name: str) -> str:
    return f"an unnamed query cannot be called {name[:100]!r}"
