"""Writes the termination message, which kubelet and operator read. Writes one file."""

from __future__ import annotations

import bisect
import dataclasses
import logging

from tidegate_spark.contract.protocol import TERMINATION_MESSAGE_LIMIT, Termination, to_json
from tidegate_spark.contract.repartition_protocol import without_last
from tidegate_spark.process.redaction import Secrets

SHORT_MESSAGE = 300
"""Characters of a message for which queries make room."""

log = logging.getLogger("tidegate")


def write_termination(path: str, termination: Termination, secrets: Secrets) -> None:
    """Write the termination message, without secrets, cut to what the kubelet takes; a failure is only logged."""
    write_message(path, termination_text(termination, secrets))


def write_message(path: str, text: str) -> None:
    """Write a termination message as it is; a failure is only logged."""
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        log.warning("termination message: %s", error)


def termination_text(termination: Termination, secrets: Secrets) -> str:
    """Return the termination message as JSON of at most TERMINATION_MESSAGE_LIMIT bytes; pure."""
    message = secrets.clean(termination.message)
    termination = _with_fewer_queries(dataclasses.replace(termination, message=message))
    text = to_json(termination)
    while not _fits(text) and message:
        # JSON escapes take more bytes than characters: halving ends quickly whatever the text is.
        message = message[: len(message) // 2]
        text = to_json(dataclasses.replace(termination, message=message + "…"))
    return text


def _with_fewer_queries(termination: Termination) -> Termination:
    """Return a termination message with as many queries as fit; a script may start thousands, each for a while."""
    end = termination.repartition
    if end is None:
        return _with_fewer_batches(termination)

    def without(number: int) -> Termination:
        return dataclasses.replace(termination, repartition=without_last(end, number))

    numbers = range(len(end.queries))  # if not even all of them do, it is the message that is too long
    return without(bisect.bisect_left(numbers, True, key=lambda number: _fits(to_json(without(number)))))


def _with_fewer_batches(termination: Termination) -> Termination:
    """Return one with the queries that were started last, and room for some of the message beside them."""
    names = tuple(termination.batches)

    def without(number: int) -> Termination:
        return dataclasses.replace(termination, batches={name: termination.batches[name] for name in names[number:]})

    def leaves_room(number: int) -> bool:
        return _fits(to_json(dataclasses.replace(without(number), message=termination.message[:SHORT_MESSAGE])))

    return without(bisect.bisect_left(range(len(names)), True, key=leaves_room))


def _fits(text: str) -> bool:
    return len(text.encode()) <= TERMINATION_MESSAGE_LIMIT
