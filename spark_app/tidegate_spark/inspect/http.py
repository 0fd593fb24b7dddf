"""The agent's HTTP answers to inspections. No I/O of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from tidegate_spark.inspect.answers import as_text
from tidegate_spark.inspect.errors import InspectionError
from tidegate_spark.inspect.questions import Question, question_of


@dataclass(frozen=True)
class Reply:
    """Status, body and headers of an answer."""

    status: int
    body: str
    headers: dict[str, str] = field(default_factory=dict)


def reply_to(target: str, ask: Callable[[Question], dict[str, object]], clean: Callable[[str], str]) -> Reply:
    """Return the reply to a request.

    Args:
        target: path and parameters, as in the request.
        ask: answers a question.
        clean: takes secrets out of the words of an error.
    """
    try:
        return Reply(200, as_text(ask(question_of(target))))
    except InspectionError as error:
        headers = {"Retry-After": str(error.retry_after_seconds)} if error.retry_after_seconds else {}
        return Reply(error.status, json.dumps({"error": clean(str(error))}, ensure_ascii=False), headers)
