"""Messages: why a control message is rejected, or what it waits for. No I/O."""

from __future__ import annotations

EXPIRED_IN_LOG = "Logged, but its time had passed when the next batch was planned."
ROLLED_BACK = (
    "A rollback undid the batch in which the message took effect; the message is no longer in effect. Send "
    "another one if it should be."
)
NO_QUERY = "No query takes part: pass one's input through tidegate_spark.control.controlled()."
SHA256_MALFORMED = "'sha256' of the payload must be 64 hexadecimal digits."
JOINS_LATE = (
    "it listens to control messages now, and its checkpoint is older. Spark accepts no further source in a "
    "checkpoint, unless sources have names from the first batch on (readStream.name(…), with "
    "spark.sql.streaming.queryEvolution.enableSourceEvolution=true and "
    "spark.sql.streaming.offsetLog.formatVersion=2). Give the query another name, and another checkpointLocation if "
    "it has one, with which it starts without state; or set spec.upgrade.mode to Stateless; or create an application "
    "that starts from an export of this one's state (spec.startFrom.exportedState)."
)
NOT_IN_REAL_TIME = (
    "it listens to control messages, and Spark's real-time mode does not have their source. Use "
    "trigger(processingTime=…), or start the query without tidegate_spark.control.controlled()."
)
RESUMED = "Resumed by a later message."


def waits_for_batch(query: str) -> str:
    return f"Query {query!r} takes it in with its next batch."


def payload_too_long(size: int, longest: int) -> str:
    return f"The payload has {size} bytes, and at most {longest} are taken."


def payload_not_json(error: Exception) -> str:
    return f"The payload is not JSON: {error}."


def payload_too_deep(levels: int) -> str:
    return f"The payload is nested deeper than {levels} levels."


def no_handler(kind: str, known: str) -> str:
    return f"The application has no handler for type {kind!r}; it understands {known}."


def too_many_types(most: int) -> str:
    return f"The application was sent messages of {most} types, and takes no other than those from now on."


def too_many_models(most: int) -> str:
    return (
        f"The application has models by {most} names, and takes no other name; send this one under one of those names."
    )


def config_too_large(size: int, largest: int) -> str:
    return (
        f"All settings together would have {size} bytes, and at most {largest} are taken: remove settings that are no "
        "longer used, by a reload-config message with null as their value."
    )


def payload_no_object(names: str) -> str:
    return f"The payload must be an object{names}."


def payload_lacks(name: str) -> str:
    return f"The payload has no {name!r}."


def payload_of_other_kind(name: str, kind: str, found: str) -> str:
    return f"{name!r} of the payload must be {kind}, not {found!r:.80}."


def level_unknown(levels: str) -> str:
    return f"'level' of the payload must be one of {levels}."


def format_unknown(formats: str) -> str:
    return f"'format' of the payload must be one of {formats}."


def address_not_allowed(uri: str, allowed: str) -> str:
    return f"{uri} is not below {allowed} (spec.control.models.allowedPrefixes)."


def model_too_large(uri: str, size_limit: int) -> str:
    return f"{uri} has more than {size_limit} bytes (spec.control.models.sizeLimit)."
