"""Parses ``key=`` and ``filter=`` into conditions on typed columns. Pure.

It is a language of our own, comparisons joined by ``and``: Spark's SQL could call functions in the driver. A schema is
``StructType.jsonValue()``.
"""

from __future__ import annotations

import datetime
import decimal
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidegate_spark.inspect.errors import BadQuestionError

Path = tuple[str, ...]

NULL, NOT_NULL = "is null", "is not null"
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
OF_TEXT = ("startswith", "contains")
MOST_CONDITIONS = 20
_WHOLE_NUMBERS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")"
    r"|(?P<operation><=|>=|!=|<>|==|=|<|>)"
    r"|(?P<number>[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)(?![\w.])"
    r"|(?P<name>(?:\w+|\$\w+|`(?:[^`]|``)+`)(?:\.(?:\w+|\$\w+|`(?:[^`]|``)+`))*))"
)
_PART = re.compile(r"`((?:[^`]|``)+)`|([\w$]+)")
_EXAMPLE = "for example filter=value.count>=10 and key.word='to'"


@dataclass(frozen=True)
class Condition:
    """One that every row that is meant fulfils."""

    path: Path
    operation: str
    """One of COMPARISONS and OF_TEXT, NULL or NOT_NULL."""
    value: str = ""
    """What it is compared with, as text that Spark's cast to ``type`` understands."""
    type: str = "string"
    """Of the column, as Spark's JSON names it."""


# --- a filter --------------------------------------------------------------------------------------------------------


def conditions_of_filter(text: str, schema: Mapping[str, Any]) -> tuple[Condition, ...]:
    """Return what ``filter=`` says.

    Args:
        text: ``<column> <operation> <value>``, joined by ``and``.
        schema: of the rows.

    Raises:
        BadQuestionError: it is not understood, or there is no such column.
    """
    tokens = list(_tokens(text))
    found: list[Condition] = []
    while tokens:
        condition, tokens = _condition(tokens, schema)
        found.append(condition)
        # Not only at the end: each condition takes the list of what is left, which may be long.
        if not tokens or len(found) > MOST_CONDITIONS:
            break
        joint = tokens.pop(0)
        if joint[0] != "name" or joint[1].lower() != "and" or not tokens:
            raise BadQuestionError("filter", f"conditions are joined by `and`, not by {joint[1]!r}; {_EXAMPLE}")
    if not found or len(found) > MOST_CONDITIONS:
        raise BadQuestionError("filter", f"has {len(found)} conditions; 1 to {MOST_CONDITIONS}, {_EXAMPLE}")
    return tuple(found)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise BadQuestionError("filter", f"is not understood at {text[position:].strip()[:40]!r}; {_EXAMPLE}")
        yield match.lastgroup, match[match.lastgroup]
        position = match.end()


def _condition(tokens: list[tuple[str, str]], schema: Mapping[str, Any]) -> tuple[Condition, list[tuple[str, str]]]:
    (kind, name), rest = tokens[0], tokens[1:]
    if kind != "name":
        raise BadQuestionError("filter", f"a condition starts with a column, not with {name!r}; {_EXAMPLE}")
    path = tuple((quoted or plain).replace("``", "`") for quoted, plain in _PART.findall(name))
    words = [each[1].lower() for each in rest[:3] if each[0] == "name"]
    for operation in (NOT_NULL, NULL):
        wanted = operation.split()
        if words[: len(wanted)] == wanted:
            of = type_at(path, schema, "filter")
            return Condition(path, operation, type=_name_of(of)), rest[len(wanted) :]
    if len(rest) < 2:
        raise BadQuestionError("filter", f"the condition on {name} has no end; {_EXAMPLE}")
    operation = {"<>": "!=", "==": "="}.get(rest[0][1].lower(), rest[0][1].lower())
    if operation not in COMPARISONS + OF_TEXT:
        known = ", ".join((*COMPARISONS, *OF_TEXT, NULL, NOT_NULL))
        raise BadQuestionError("filter", f"{rest[0][1]!r} after {name} is none of {known}")
    return _compared(path, operation, _literal(*rest[1]), schema), rest[2:]


def _compared(path: Path, operation: str, value: str, schema: Mapping[str, Any]) -> Condition:
    of = _plain_type_at(path, schema, "filter")
    if operation in OF_TEXT and of != "string":
        raise BadQuestionError("filter", f"{operation} is for texts, and {'.'.join(path)} is of type {of}")
    return Condition(path, operation, checked(value, of, path, "filter"), of)


def _literal(kind: str, text: str) -> str:
    if kind == "text":
        return text[1:-1].replace(text[0] * 2, text[0])
    if kind == "number" or (kind == "name" and text.lower() in ("true", "false")):
        return text
    raise BadQuestionError("filter", f"{text!r} is no value: texts and times are in quotes; {_EXAMPLE}")


# --- a key -----------------------------------------------------------------------------------------------------------


def conditions_of_key(text: str, schema: Mapping[str, Any]) -> tuple[Condition, ...]:
    """Return what ``key=`` says: the value of a key that has one column, or a JSON object of several columns' values.

    Columns that are left out of the object may have any value.

    Args:
        text: of the parameter.
        schema: of the rows.

    Raises:
        BadQuestionError: it is not understood, or the key has other columns.
    """
    leaves = key_leaves(schema)
    if not leaves:
        raise BadQuestionError("key", "this state has no key: leave it out")
    given = _object(text)
    if given is None:
        if len(leaves) > 1:
            names = ", ".join(".".join(path[1:]) for path in leaves)
            raise BadQuestionError("key", f'has {len(leaves)} columns ({names}): say {{"{leaves[0][1]}": …}}')
        of = _plain_type_at(leaves[0], schema, "key")
        return (Condition(leaves[0], "=", checked(text, of, leaves[0], "key"), of),)
    found = tuple(_conditions_of(given, ("key",), schema))
    if not found:
        raise BadQuestionError("key", "the object is empty: give it a column, or leave it out")
    return found


def is_whole_key(conditions: tuple[Condition, ...], schema: Mapping[str, Any]) -> bool:
    """Return whether conditions say what each column of the key is, so that all rows meant are in one partition."""
    said = {each.path for each in conditions if each.operation == "="}
    leaves = key_leaves(schema)
    return bool(leaves) and all(path in said for path in leaves)


def key_leaves(schema: Mapping[str, Any]) -> list[Path]:
    """Return the paths of the plain columns that the key of a state consists of, in their order."""
    return [path for path in _leaves(schema, ()) if path[0] == "key"]


def _object(text: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        # A number with a fraction is kept as it is written: as a float it may be another one.
        found = json.loads(text, parse_float=str)
    except (ValueError, RecursionError) as error:
        raise BadQuestionError("key", f"begins like a JSON object and is none ({error})") from error
    return found if isinstance(found, dict) else None


def _conditions_of(given: Mapping[str, Any], path: Path, schema: Mapping[str, Any]) -> Iterator[Condition]:
    for name, value in given.items():
        here = (*path, name)
        if isinstance(value, dict):
            type_at(here, schema, "key")
            yield from _conditions_of(value, here, schema)
        elif value is None:
            yield Condition(here, NULL, type=_name_of(type_at(here, schema, "key")))
        else:
            of = _plain_type_at(here, schema, "key")
            text = value if isinstance(value, str) else json.dumps(value)
            yield Condition(here, "=", checked(text, of, here, "key"), of)


# --- schemas and values ----------------------------------------------------------------------------------------------


def type_at(path: Path, schema: Any, parameter: str) -> Any:
    """Return the type of a column, or of a field of it.

    Raises:
        BadQuestionError: there is none.
    """
    of = schema
    for depth, name in enumerate(path):
        fields = {field["name"]: field["type"] for field in fields_of(of)}
        # As Spark: capitals make no difference, unless both are there.
        same = [known for known in fields if known == name] or [known for known in fields if _equal(known, name)]
        if len(same) != 1:
            where = ".".join(path[:depth]) or "a row"
            there = ", ".join(fields) if fields else f"no fields, it is of type {_name_of(of)}"
            there += "".join(f" (there is {column}.{name})" for column in _columns_with(name, fields) if not depth)
            raise BadQuestionError(parameter, f"{where} has no {name!r}; it has {there}")
        of = fields[same[0]]
    return of


def fields_of(of: Any) -> list[dict[str, Any]]:
    """Return the fields of a struct; none of what is no struct."""
    return list(of["fields"]) if isinstance(of, dict) and of.get("type") == "struct" else []


def checked(text: str, of: str, path: Path, parameter: str) -> str:
    """Return a value as text that Spark's cast understands.

    Raises:
        BadQuestionError: it is none of the type.
    """
    try:
        return _as_text(text.strip() if of != "string" else text, of)
    except (ValueError, ArithmeticError) as error:
        raise BadQuestionError(parameter, f"{'.'.join(path)} is of type {of}, and {text[:60]!r} is none") from error


def _as_text(text: str, of: str) -> str:  # noqa: PLR0911 - one for each kind of type
    if of == "string":
        return text
    if of in _WHOLE_NUMBERS:
        number, most = int(text), 2 ** (_WHOLE_NUMBERS[of] - 1)
        if not -most <= number < most:
            raise ValueError
        return str(number)
    if of in ("float", "double"):
        return repr(float(text))
    if of.startswith("decimal"):
        return _decimal(text, of)
    if of == "boolean":
        return _boolean(text)
    if of == "date":
        return datetime.date.fromisoformat(text).isoformat()
    return _time(text, of)


def _decimal(text: str, of: str) -> str:
    # It is written out once it is known to be short: 1e999999999 has a billion digits.
    number = decimal.Decimal(text)
    precision, scale = map(int, re.findall(r"\d+", of))
    if not number.is_finite():
        raise ValueError(text)
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    significant = "".join(map(str, digits)).rstrip("0")
    if not significant:
        return "0"
    fraction = -exponent - (len(digits) - len(significant))
    if number.adjusted() >= precision - scale or fraction > scale:
        raise ValueError(text)
    return format(number, "f")


def _boolean(text: str) -> str:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower()


def _time(text: str, of: str) -> str:
    at = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    if of == "timestamp_ntz":
        if at.tzinfo is not None:
            raise ValueError(text)
        return at.isoformat()
    utc = datetime.timezone.utc  # noqa: UP017 - its other name is newer than the Python of stock images
    return (at if at.tzinfo is not None else at.replace(tzinfo=utc)).astimezone(utc).isoformat()


def _columns_with(name: str, columns: Mapping[str, Any]) -> list[str]:
    return [column for column, of in columns.items() if any(field["name"] == name for field in fields_of(of))]


def _plain_type_at(path: Path, schema: Mapping[str, Any], parameter: str) -> str:
    of = type_at(path, schema, parameter)
    inner = [field["name"] for field in fields_of(of)]
    if inner:
        raise BadQuestionError(parameter, f"{'.'.join(path)} is a struct: name a field of it ({', '.join(inner)})")
    name = _name_of(of)
    plain = ("string", "float", "double", "boolean", "date", "timestamp", "timestamp_ntz")
    if name in plain or name in _WHOLE_NUMBERS or name.startswith("decimal"):
        return name
    message = "cannot be compared here; tidegate_spark.inside.state() gives a DataFrame"
    raise BadQuestionError(parameter, f"{'.'.join(path)} is of type {name}, which {message}")


def _name_of(of: Any) -> str:
    return of if isinstance(of, str) else str(of.get("type", "?"))


def _leaves(of: Any, path: Path) -> Iterator[Path]:
    fields = fields_of(of)
    for field in fields:
        yield from _leaves(field["type"], (*path, field["name"]))
    if not fields and path:
        yield path


def _equal(one: str, other: str) -> bool:
    return one.lower() == other.lower()
