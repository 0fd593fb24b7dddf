"""Stored forms, as golden copies that nothing rewrites: what one version writes, and another one reads.

A copy is what stands in the bucket, in an environment variable or on the wire, to the byte. Reading and writing are the
product's own. A copy is put there by hand, once: it stands for what is stored out there, which no commit changes.
"""

import dataclasses
import difflib
import json
import pprint
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "unit" / "stored_forms" / "forms"
RULE = (
    "Stored forms are read by other versions: add fields with a default, never rename or drop one. What gets a field "
    "keeps the copy that it has, as a form that is only read, and gets a second copy with the field."
)
LATER = "fieldOfALaterVersion"


@dataclass(frozen=True)
class Form:
    """What is stored under one name."""

    name: str
    """Of the golden copy, without ``.json``."""
    value: Any
    """What it says."""
    read: Callable[[bytes], Any]
    write: Callable[[Any], bytes] | None
    """None: no version writes it any more, and all have to read it."""
    to_the_byte: bool = False
    """Whether something goes by its bytes; else only by what they say as JSON."""

    def assert_read(self) -> None:
        """Assert that the golden copy is read, whole."""
        assert_read(self.name, self._read(stored(self.name)), self.value)

    def assert_read_with_more(self) -> None:
        """Assert that fields which are not known here change nothing, wherever they are."""
        assert_read(self.name, self._read(with_more(self.name, self.value)), self.value)

    def assert_written(self) -> None:
        """Assert that the value is written as the golden copy has it."""
        assert self.write is not None
        assert_written(self.name, self.write(self.value), to_the_byte=self.to_the_byte)

    def assert_reported(self) -> None:
        """Assert that the golden copy has each field that there is, at something else than its default."""
        left = untold(self.value)
        assert left == [], f"{self.name}.json says nothing of {', '.join(left)}. {RULE}"

    def _read(self, body: bytes) -> Any:
        try:
            return self.read(body)
        except Exception as error:  # whatever a reader makes of what it cannot read
            raise AssertionError(f"{self.name}.json is not read: {error}. {RULE}") from error


def each(forms: Sequence[Form]) -> pytest.MarkDecorator:
    """Have a test run for each form."""
    return pytest.mark.parametrize("form", forms, ids=[form.name for form in forms])


def each_written(forms: Sequence[Form]) -> pytest.MarkDecorator:
    """Have a test run for each form that is still written."""
    return each([form for form in forms if form.write is not None])


def stored(name: str) -> bytes:
    """Return a golden copy."""
    return (FOLDER / f"{name}.json").read_bytes()


def assert_read(name: str, found: Any, value: Any) -> None:
    """Assert that what was read of a golden copy is this value."""
    # As texts, too: 1 equals 1.0, and whoever reads whole numbers only does not read the other one.
    texts = pprint.pformat(value), pprint.pformat(found)
    if found != value or texts[0] != texts[1]:
        raise AssertionError(_difference(f"{name}.json", texts[0], "what is read", texts[1]))


def assert_written(name: str, written: bytes, *, to_the_byte: bool = False) -> None:
    """Assert that what was written is the golden copy."""
    copy = stored(name)
    if json.loads(written) != json.loads(copy):
        raise AssertionError(_difference(f"{name}.json", _lines(copy), "what is written", _lines(written)))
    if to_the_byte and written != copy:
        raise AssertionError(_difference(f"{name}.json", repr(copy), "the same, in other bytes", repr(written)))


def with_more(name: str, value: Any) -> bytes:
    """Return a golden copy in which every object that is one of ours, and no map by name, has a field more."""
    return json.dumps(_with_more(json.loads(stored(name)), value)).encode()


def untold(value: Any) -> list[str]:
    """Return the fields that stand at their default, or at nothing, in all objects of a kind within ``value``."""
    reported: dict[str, bool] = {}
    for each in _objects(value):
        for field in dataclasses.fields(each):
            name = f"{type(each).__name__}.{field.name}"
            reported[name] = reported.get(name, False) or _is_reported(field, getattr(each, field.name))
    return sorted(name for name, is_reported in reported.items() if not is_reported)


def _with_more(document: Any, value: Any) -> Any:
    more = {LATER: {"what": ["nobody", "knows", "yet"]}}
    if dataclasses.is_dataclass(value) and isinstance(document, dict):
        return {name: _with_more(each, getattr(value, name, None)) for name, each in document.items()} | more
    if isinstance(value, Mapping) and isinstance(document, dict):
        return {name: _with_more(each, value[name]) for name, each in document.items()}
    if isinstance(value, tuple | list) and isinstance(document, list):
        return [_with_more(*pair) for pair in zip(document, value, strict=True)]
    return document


def _objects(value: Any) -> Iterator[Any]:
    parts: Iterable[Any] = ()
    if dataclasses.is_dataclass(value):
        yield value
        parts = [getattr(value, field.name) for field in dataclasses.fields(value)]
    elif isinstance(value, Mapping):
        parts = value.values()
    elif isinstance(value, tuple | list):
        parts = value
    for part in parts:
        yield from _objects(part)


def _is_reported(field: dataclasses.Field[Any], value: Any) -> bool:
    if field.default is not dataclasses.MISSING:
        return bool(value != field.default)
    if field.default_factory is not dataclasses.MISSING:
        return bool(value != field.default_factory())
    return bool(value)


def _lines(body: bytes) -> str:
    return json.dumps(json.loads(body), indent=1, sort_keys=True)


def _difference(wanted_name: str, wanted: str, found_name: str, found: str) -> str:
    lines = difflib.unified_diff(wanted.splitlines(), found.splitlines(), wanted_name, found_name, lineterm="")
    return "\n".join([*lines, RULE])
