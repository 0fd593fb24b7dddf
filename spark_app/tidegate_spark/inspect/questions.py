"""Parses an HTTP path and its parameters into a question. Pure; standard library only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tidegate_spark.inspect.errors import BadQuestionError, NotThereError

STATE, SOURCES, WINDOWS = "state", "sources", "windows"
PATHS = (
    "GET /v1/state, /v1/state/<query>, /v1/state/<query>/<operator>, /v1/sources, /v1/sources/<query>, "
    "/v1/windows/<query>, /v1/windows/<query>/<operator>"
)
MOST_ROWS, USUAL_ROWS = 1000, 100
MOST_SECONDS, USUAL_SECONDS = 60, 20
MOST_WINDOWS, USUAL_WINDOWS = 1000, 100
MOST_CONTENTS, USUAL_CONTENTS = 100, 10
LONGEST_QUESTION = 8192
"""Characters of path and parameters."""
OPEN, CLOSED, ALL = "open", "closed", "all"
_OF_ROWS = frozenset({"name", "key", "filter", "limit", "count"})


@dataclass(frozen=True)
class Operators:
    """Which operators with state there are, and how large they are."""

    query: str | None = None
    """None: of all queries, from memory alone; else with the names of what each operator keeps."""
    seconds: int = USUAL_SECONDS


@dataclass(frozen=True)
class Sources:
    """Where the inputs are, and how far behind."""

    query: str | None = None


@dataclass(frozen=True)
class Rows:
    """Rows of an operator's state at the newest committed batch."""

    query: str
    operator: int
    name: str | None = None
    """Of the state variable, side of a join (``left``, ``right``) or store; needed if there are several."""
    key: str | None = None
    filter: str | None = None
    limit: int = USUAL_ROWS
    count: bool = False
    """Ask how many there are, not which."""
    seconds: int = USUAL_SECONDS


@dataclass(frozen=True)
class Windows:
    """The windows that are in the state, the earliest first, with what is in them."""

    query: str
    operator: int | None = None
    name: str | None = None
    which: str = OPEN
    filter: str | None = None
    limit: int = USUAL_WINDOWS
    rows: int = USUAL_CONTENTS
    """Of each window, at most."""
    seconds: int = USUAL_SECONDS


Question = Operators | Sources | Rows | Windows


def more_time(seconds: int) -> str:
    """Return how to give a look more than so many seconds, as the command and as a request say it; empty if none is."""
    if seconds >= MOST_SECONDS:
        return ""
    return f"more time (--seconds of the command, seconds= of the request; at most {MOST_SECONDS})"


def is_question(path: str) -> bool:
    """Return whether a path of the agent's is about the inside of the application."""
    # Not by a parser of URLs, which raises an exception for some of what a request may say. The handler of requests
    # takes several slashes at the beginning for one.
    parts = ("/" + path.lstrip("/") if path.startswith("//") else path).partition("?")[0].split("/")
    return len(parts) > 2 and parts[1] == "v1" and parts[2] in (STATE, SOURCES, WINDOWS)


def question_of(target: str) -> Question:
    """Return what an HTTP request asks.

    Args:
        target: path and parameters, as they are in the request.

    Raises:
        BadQuestionError: a parameter cannot be meant.
        NotThereError: there is no such path.
    """
    if len(target) > LONGEST_QUESTION:
        raise BadQuestionError("the question", f"has {len(target)} characters; at most {LONGEST_QUESTION}")
    split = urlsplit(target)
    kind, *names = [unquote(part) for part in split.path.removeprefix("/v1/").split("/")]
    given = _parameters(split.query)
    made = _of_path(kind, names, given)
    if made is None:
        raise NotThereError(f"there is no {split.path}; there are {PATHS}")
    if given.left:
        known = ", ".join(sorted(given.asked)) or "no parameters"
        rows = isinstance(made, Operators) and made.query is not None and given.left <= _OF_ROWS
        where = f"; rows of an operator's state are at {split.path}/<operator>" if rows else ""
        raise BadQuestionError(sorted(given.left)[0], f"is no parameter of {split.path}; it has {known}{where}")
    return made


def _of_path(kind: str, names: list[str], given: _Given) -> Question | None:
    if "" in names or len(names) > 2:
        return None
    query = names[0] if names else None
    if kind == STATE and len(names) < 2:
        return Operators(query, given.seconds()) if query else Operators()
    if kind == SOURCES and len(names) < 2:
        return Sources(query)
    if kind == STATE and query is not None:
        return _rows(query, _operator(names[1]), given)
    if kind == WINDOWS and query is not None:
        return _windows(query, _operator(names[1]) if len(names) == 2 else None, given)
    return None


def _rows(query: str, operator: int, given: _Given) -> Rows:
    return Rows(
        query,
        operator,
        name=given.text("name"),
        key=given.text("key"),
        filter=given.text("filter"),
        limit=given.number("limit", USUAL_ROWS, 1, MOST_ROWS),
        count=given.one_of("count", ("true", "false"), "false") == "true",
        seconds=given.seconds(),
    )


def _windows(query: str, operator: int | None, given: _Given) -> Windows:
    return Windows(
        query,
        operator,
        name=given.text("name"),
        which=given.one_of("which", (OPEN, CLOSED, ALL), OPEN),
        filter=given.text("filter"),
        limit=given.number("limit", USUAL_WINDOWS, 1, MOST_WINDOWS),
        rows=given.number("rows", USUAL_CONTENTS, 0, MOST_CONTENTS),
        seconds=given.seconds(),
    )


def _operator(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 6):
        raise BadQuestionError("<operator>", f"is a number, as GET /v1/state lists them, not {text[:40]!r}")
    return int(text)


class _Given:
    """The parameters of a request; knows which were asked for."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)
        self.left = set(values)
        self.asked: set[str] = set()

    def text(self, name: str) -> str | None:
        found: str | None = self._take(name, None, lambda value: value)
        return found

    def number(self, name: str, usual: int, least: int, most: int) -> int:
        def read(value: str) -> int:
            if not (value.isascii() and value.isdigit() and len(value) < 10 and least <= int(value) <= most):
                raise BadQuestionError(name, f"is a number from {least} to {most}, not {value[:40]!r}")
            return int(value)

        return int(self._take(name, usual, read))

    def seconds(self) -> int:
        return self.number("seconds", USUAL_SECONDS, 1, MOST_SECONDS)

    def one_of(self, name: str, words: tuple[str, ...], usual: str) -> str:
        def read(value: str) -> str:
            if value not in words:
                raise BadQuestionError(name, f"is one of {', '.join(words)}, not {value[:40]!r}")
            return value

        return str(self._take(name, usual, read))

    def _take(self, name: str, usual: Any, read: Callable[[str], Any]) -> Any:
        self.asked.add(name)
        self.left.discard(name)
        return read(self._values[name]) if name in self._values else usual


def _parameters(query: str) -> _Given:
    values: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name in values:
            raise BadQuestionError(name, "is given twice; say everything in one")
        if not value:
            raise BadQuestionError(name, "is empty; give it a value or leave it out")
        values[name] = value
    return _Given(values)
