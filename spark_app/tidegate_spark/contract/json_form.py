"""Dataclasses to JSON and back, checked against their type hints. Standard library only, no I/O."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import re
import typing
from enum import Enum
from typing import Any, TypeVar

T = TypeVar("T")
FORMAT_FIELD = "version"
"""Of a stored form: the number of its format. A form without one is as it was before it had numbers: of format 1."""

UNKNOWN = "UNKNOWN"
"""Name of the member of a kind of words that stands for any which is not known here."""
_LONGEST_SHOWN = 100
"""Characters of a value or a name in a message: whoever may write a form may put a megabyte there."""
_LARGEST = 2**63 - 1
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)", re.DOTALL
)
"""What stands for one character: a pair of halves, a half that is alone, or anything else, of which two characters."""
_HALF, _UNKNOWN_CHARACTER = len(r"\ud800"), r"\ufffd"


class OpenEnum(str, Enum):
    """A word that a runtime reports: a newer one may know more, and the rest of its report is to be read all the same.

    Whoever reads a stored form refuses such a word (:func:`from_stored`): it would be lost when the form is written.
    """

    @classmethod
    def _missing_(cls, value: object) -> OpenEnum | None:
        return cls.__members__.get(UNKNOWN) if isinstance(value, str) else None


class DamagedFormError(ValueError):
    """A stored form is not what any version of Tidegate writes: it is not to be taken for one that says nothing."""


class NewerOrderError(ValueError):
    """An order has a field or a word that is not known here: who gave it is newer, and half of it would be left out."""


class NewerFormatError(ValueError):
    """A newer version of Tidegate wrote a stored form: it is neither damaged nor to be written over."""


def to_json(value: Any) -> str:
    """Return ``value``, a dataclass of such and of plain values, as compact JSON with its fields' names."""
    # vars rather than dataclasses.asdict, which copies every value down to the last: half of what building a pod costs.
    return without_halves(json.dumps(value, default=vars, separators=(",", ":"), sort_keys=True))


def without_halves(text: str) -> str:
    """Return JSON with U+FFFD in the place of each half of a character (a surrogate) that is alone.

    Python has such for bytes that are no UTF-8, in names of files for instance, which an exception may quote. Python
    reads them from JSON, too; no other program does, nor can they be written as UTF-8.
    """
    if "\\ud" not in text and "\\uD" not in text:
        return text
    return _ESCAPE.sub(lambda found: _UNKNOWN_CHARACTER if len(found[0]) == _HALF else found[0], text)


def from_json(kind: type[T], text: str | bytes) -> T:
    """Return the dataclass ``kind`` read from JSON; unknown fields are ignored so that versions can differ.

    Raises:
        ValueError: if the text is not JSON, or a field without default is missing or of another type.
    """
    return typing.cast(T, _EXACT.read(kind, _object_of(kind, text), kind.__name__))


def from_report(kind: type[T], text: str | bytes) -> T:
    """Return what a runtime reports, which may be newer: a word that is not known here is ``UNKNOWN``.

    So is a number that no status can hold: an integer beyond 64 bits is the nearest one within, and what is no number
    or infinite is 0. Nothing that is read so is to be stored again: what was said is lost.

    Raises:
        NewerFormatError: its format is newer, so that its fields may mean something else.
        ValueError: as :func:`from_json`.
    """
    # An earlier runtime writes halves of characters.
    whole = without_halves(text if isinstance(text, str) else text.decode())
    data = _object_of(kind, whole)
    check_format(data)
    return typing.cast(T, _TOLERANT.read(kind, data, kind.__name__))


def to_order(value: Any) -> str:
    """Return an order as JSON without the fields that stand at their default.

    A runtime that is older refuses fields that it does not know (:func:`from_order`). It is to refuse what asks for
    something that it cannot do, and nothing else.
    """
    return json.dumps(_without_defaults(value), separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def from_order(kind: type[T], text: str | bytes) -> T:
    """Return an order, none of which may be left out.

    Raises:
        NewerOrderError: it has a field or a word that is not known here.
        ValueError: as :func:`from_json`.
    """
    return typing.cast(T, _WHOLE.read(kind, _object_of(kind, text), kind.__name__))


def from_stored(kind: type[T], text: str | bytes, newest: int = 1) -> T:
    """Return the dataclass ``kind`` read from a stored form, which another version of Tidegate may have written.

    The number of its format is read first: what else changed with it would be reported as damage.

    Args:
        kind: of the form.
        text: what is stored.
        newest: the newest format that is known.

    Raises:
        NewerFormatError: its format is newer.
        DamagedFormError: as :func:`from_json`.
    """
    try:
        data = _object_of(kind, text)
        check_format(data, newest)
        return typing.cast(T, _EXACT.read(kind, data, kind.__name__))
    except NewerFormatError:
        raise
    except ValueError as error:
        raise DamagedFormError(str(error)) from error


def check_format(data: dict[str, Any], newest: int = 1) -> None:
    """Refuse a stored form that only a newer Tidegate can read.

    Args:
        data: the form, as it was read from JSON.
        newest: the newest format that is known.

    Raises:
        NewerFormatError: its format is newer.
        ValueError: what stands in the place of the number is none.
    """
    number = data.get(FORMAT_FIELD, 1)
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise ValueError(f"{FORMAT_FIELD}: expected the number of a format, got {number!r:.{_LONGEST_SHOWN}}")
    if number > newest:
        raise NewerFormatError(f"its format is {number}, and this Tidegate knows {newest}: use a newer Tidegate")


def _object_of(kind: type, text: str | bytes) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except RecursionError as error:
        raise ValueError(f"{kind.__name__} is nested deeper than any stored form is") from error
    if not isinstance(data, dict):
        raise ValueError(f"expected an object for {kind.__name__}, got {type(data).__name__}")
    return data


@dataclasses.dataclass(frozen=True)
class _Reader:
    """Reads values by their type hints; ``where`` names the place in messages."""

    unknown_values: bool = False
    """Read a word that is not known as the member ``UNKNOWN`` of its kind, if that has one, and numbers as writable."""
    unknown_fields: bool = True
    """Ignore fields that are not known."""

    def read(self, kind: Any, value: Any, where: str) -> Any:
        shape = _shape_of(kind)
        if shape.optional is not None:
            return None if value is None else self.read(shape.optional, value, where)
        if shape.is_dataclass:
            return self._read_dataclass(kind, value, where)
        if shape.arguments:
            return self._read_collection(shape.origin, shape.arguments, value, where)
        return self._read_scalar(kind, value, where)

    def _read_collection(self, origin: Any, arguments: tuple[Any, ...], value: Any, where: str) -> Any:
        if origin is tuple and isinstance(value, list):
            return tuple(self.read(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(value))
        if origin is dict and isinstance(value, dict):
            return {k: self.read(arguments[1], item, f"{where}.{k:.{_LONGEST_SHOWN}}") for k, item in value.items()}
        raise ValueError(f"{where}: expected {'a list' if origin is tuple else 'an object'}")

    def _read_scalar(self, kind: Any, value: Any, where: str) -> Any:
        if kind is Any:
            return value
        if self.unknown_values:
            value = _writable(value)
        if issubclass(kind, Enum):
            return self._read_open_enum(kind, value, where)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            return _float_of(value, where)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise ValueError(f"{where}: expected {kind.__name__}, got {type(value).__name__}")
        return value

    def _read_open_enum(self, kind: type[Enum], value: Any, where: str) -> Enum:
        try:
            word = kind(value)
        except (ValueError, TypeError):
            word = None
        if word is None or (word.name == UNKNOWN and word.value != value and not self.unknown_values):
            kind_of_error = ValueError if self.unknown_fields else NewerOrderError
            raise kind_of_error(f"{where}: {value!r:.{_LONGEST_SHOWN}} is not a known {kind.__name__}")
        return word

    def _read_dataclass(self, kind: Any, value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            raise ValueError(f"{where}: expected an object")
        hints = _hints_of(kind)
        unknown = min(value.keys() - hints.keys(), default="")
        if unknown and not self.unknown_fields:
            raise NewerOrderError(f"{where}.{unknown:.{_LONGEST_SHOWN}}: not a known field")
        known: dict[str, Any] = {}
        for f in dataclasses.fields(kind):
            if f.name in value:
                known[f.name] = self.read(hints[f.name], value[f.name], f"{where}.{f.name}")
            elif f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING:
                raise ValueError(f"{where}.{f.name}: missing")
        return kind(**known)


def _writable(value: Any) -> Any:
    """Return a number that the API server takes, the value itself if it is none.

    One application's driver may report any: refused, it would keep all the rest of its status from being written.
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else 0.0
    return max(-_LARGEST - 1, min(value, _LARGEST)) if type(value) is int else value


def _float_of(value: int, where: str) -> float:
    try:
        return float(value)
    except OverflowError as error:  # which is no ValueError
        raise ValueError(f"{where}: the number is too large") from error


_EXACT, _TOLERANT, _WHOLE = _Reader(), _Reader(unknown_values=True), _Reader(unknown_fields=False)


def _without_defaults(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        reported = (f for f in dataclasses.fields(value) if getattr(value, f.name) != _default_of(f))
        return {f.name: _without_defaults(getattr(value, f.name)) for f in reported}
    if isinstance(value, tuple):
        return [_without_defaults(each) for each in value]
    return {name: _without_defaults(each) for name, each in value.items()} if isinstance(value, dict) else value


def _default_of(field: dataclasses.Field[Any]) -> Any:
    return field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default


@dataclasses.dataclass(frozen=True)
class _Shape:
    """What there is to know of a type hint."""

    optional: Any
    """The hint of a value that is not None, where None is one as well; otherwise None."""
    is_dataclass: bool
    origin: Any
    arguments: tuple[Any, ...]


@functools.cache
def _shape_of(kind: Any) -> _Shape:
    # A catalog of a thousand snapshots is read value by value; taking hints apart costs more than the values do.
    arguments = typing.get_args(kind)
    optional = next(a for a in arguments if a is not type(None)) if type(None) in arguments else None
    return _Shape(optional, dataclasses.is_dataclass(kind), typing.get_origin(kind), arguments)


@functools.cache
def _hints_of(kind: Any) -> dict[str, Any]:
    # The operator reads a termination message with each look at a driver that ended; resolving hints costs most of it.
    return typing.get_type_hints(kind)
