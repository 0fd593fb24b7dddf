"""Messages: why an agent gives no answer. No I/O."""

from __future__ import annotations

OTHER_KEY = "it was launched with another key than this operator has"
NOT_SIGNED = "what answers is not the driver's process: its answer is not signed"
NOT_THIS_LAUNCH = "what answers has not the token of this launch"


def report_unreadable(error: Exception) -> str:
    return f"the report is not understood: {error}"


def answer_too_long(longest: int) -> str:
    return f"the answer is longer than {longest} bytes"


def refused(status: int, text: str) -> str:
    return f"HTTP {status}: {text}"


def no_answer(seconds: float) -> str:
    return f"no answer within {seconds:.0f} s"


def no_connection(why: str) -> str:
    return f"no connection: {why}"


def greeting_unreadable(error: Exception) -> str:
    return f"its greeting is not understood: {error}"
