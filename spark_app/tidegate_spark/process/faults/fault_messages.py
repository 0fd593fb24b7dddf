"""Messages: what is wrong when Spark fails because of its environment. No I/O."""

from __future__ import annotations

FENCED = "Another driver took the storage over."
BROKER_UNAVAILABLE = "The message broker could not be used."
BUCKET_NOT_FOUND = "A bucket does not exist."
CREDENTIALS_MISSING = "There are no credentials for a bucket."
CREDENTIALS_REJECTED = "A store rejects the credentials."
CREDENTIALS_EXPIRED = "The session token for a store is expired."
STORAGE_UNAVAILABLE = "A store does not answer."
STORAGE_THROTTLED = "A store asks for fewer requests."
CHECKPOINT_FILE_MISSING = "An object of the checkpoint is missing."
DISK_FULL = "The local disk of the driver or of an executor is full."


def state_missing(path: str, said: str) -> str:
    """Return the text about the state of a query that has committed some; ``said`` is what Spark says."""
    return f"{CHECKPOINT_FILE_MISSING} The query has committed state, and nothing is below {path}. {said}"


def module_of_driver_alone(module: str) -> str:
    return (
        f"The driver has {module!r}, and the executors' Python workers do not: name its file in "
        "spec.application.pyFiles, or put it into spec.application.image"
    )


def module_missing(module: str) -> str:
    return f"Put {module!r} into spec.application.image, or name its file there in spec.application.pyFiles"


def source_data_lost(lost: str) -> str:
    return f"A source no longer has records that the application has to read next: {lost}."


# --- which records a source has lost: the part after the colon ---

MOST_PARTITIONS = 20
"""Of those that are named: a message has room for more, and nobody reads them."""


def of_partitions(partitions: list[tuple[str, int]]) -> str:
    said = [f"topic {topic!r}, partition {number}" for topic, number in partitions[:MOST_PARTITIONS]]
    more = len(partitions) - len(said)
    return "; ".join([*said, f"and {more} more"] if more else said)


def ends_before(partition: str, wanted: str, end: str) -> str:
    return f"{partition} ends at offset {end}, and the application continues at offset {wanted}"


def begins_after(partition: str, wanted: str, begin: str) -> str:
    return f"{partition} begins at offset {begin}, and the application continues at offset {wanted}"


def unreadable(partition: str, first: str, last: int) -> str:
    return f"{partition} does not have all of the offsets {first} to {last}"


def gone(partitions: str) -> str:
    return f"{partitions} does not exist any more"


def unread(condition: str) -> str:
    """Return what is said of a condition that a newer connector has."""
    return f"Spark's error condition is {condition}"


def raised_then(exception: str, what: str) -> str:
    return f"The application then raised {exception}: {what}" if what else f"The application then raised {exception}."
