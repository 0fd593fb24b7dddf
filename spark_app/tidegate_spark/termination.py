"""The termination message: what kubelet and operator read of an ended process. Writes one file."""

from __future__ import annotations

import dataclasses
import logging

from tidegate_spark.protocol import TERMINATION_MESSAGE_LIMIT, Termination, to_json
from tidegate_spark.redaction import Secrets

log = logging.getLogger("tidegate")


def write_termination(path: str, termination: Termination, secrets: Secrets) -> None:
    """Write the termination message, without secrets, cut to what the kubelet takes; a failure is only logged."""
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(termination_text(termination, secrets))
    except OSError as error:
        log.warning("termination message: %s", error)


def termination_text(termination: Termination, secrets: Secrets) -> str:
    """Return the termination message as JSON of at most TERMINATION_MESSAGE_LIMIT bytes; pure."""
    message = secrets.clean(termination.message)
    text = to_json(dataclasses.replace(termination, message=message))
    while len(text.encode()) > TERMINATION_MESSAGE_LIMIT and message:
        # JSON escapes take more bytes than characters: halving ends quickly whatever the text is.
        message = message[: len(message) // 2]
        text = to_json(dataclasses.replace(termination, message=message + "…"))
    return text
