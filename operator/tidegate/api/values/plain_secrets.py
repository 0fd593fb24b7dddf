"""Finds secrets in plain text in a spec, removes them from a version, and puts them in again. No I/O.

A version is recorded without its secrets, because records outlive the edit that moved a secret to a Secret. A version
that runs again takes them from the same fields of the present spec.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tidegate.api.values import messages
from tidegate_spark.contract.protocol import CONFIG_VARIABLE
from tidegate_spark.contract.secret_shapes import (
    REDACTED,
    is_literal,
    names_a_secret,
    secrets_of,
    split_shapes,
    without_shapes,
)

CHANNEL, STORAGE = "control.channel.", "storage."
SETTINGS, ARGUMENTS = "sparkConf", "application.args"
_MAPS = (SETTINGS, "control.channel.kafka.options")
"""Fields whose keys are names of settings."""
_SHORT = 16 * 1024
SHORTEST = 6
"""Shorter values would blot out ordinary words elsewhere; where they stand they are left out all the same."""

MOST_VALUES, LONGEST_TEXT = 2000, 32 * 1024
"""Values that are looked for in a text about an object, and characters of it: each is looked for in all of it. Whoever
makes a pod template has thousands of values in it, and an answer that quotes a megabyte of it."""
NOT_REPEATED = messages.answer_not_repeated(MOST_VALUES // 2)


@dataclass(frozen=True, slots=True)
class PlainSecret:
    """One secret, and the field that it stands in."""

    field: str
    """Its path, such as ``spec.application.env[TOKEN].value``."""
    place: str
    """The field of the version that it is in, such as ``application.env``."""
    value: str


class SecretGoneError(ValueError):
    """A recorded version has a secret in a place that the spec has no more."""

    def __init__(self, field: str) -> None:
        self.field = field
        super().__init__(messages.secret_gone(field))


def plain_secrets(version: str) -> tuple[PlainSecret, ...]:
    """Return the secrets in a version, as :func:`tidegate.api.spec_hash.version_of` writes it."""
    return _without(version)[1]


def without_secrets(version: str) -> str:
    """Return a version as anybody may read it who may read the resource; one without secrets as it is."""
    return _without(version)[0]


def with_secrets(recorded: dict[str, Any], present: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a recorded version with the secrets that the present one has in the same places.

    Raises:
        SecretGoneError: it has none there.
    """
    return {
        path: _filled(value, present.get(path), f"spec.{path}", path) if REDACTED in json.dumps(value) else value
        for path, value in recorded.items()
    }


def without_secrets_of(manifest: Any, text: str) -> str:
    """Return a text about an object without the secrets that stand in it; the settings of a launch are looked into.

    Of a text that is longer than anybody reads it is the beginning; of an object with more secrets than anybody has, a
    sentence that says so.
    """
    found: list[PlainSecret] = []
    if isinstance(manifest, dict) and manifest.get("kind") == "Secret":
        data = {**(manifest.get("data") or {}), **(manifest.get("stringData") or {})}
        found += [PlainSecret(name, "data", str(value)) for name, value in data.items()]
    else:
        _shown(manifest, "", "", found.append)
        for config in _configurations(manifest):
            _shown(config.get("spark_conf"), "", SETTINGS, found.append)
            _shown(config.get("args"), "", ARGUMENTS, found.append)
    values = {spelt for each in found for spelt in (each.value, json.dumps(each.value)[1:-1]) if len(spelt) >= SHORTEST}
    if len(values) > MOST_VALUES:
        return NOT_REPEATED
    beginning = text[:LONGEST_TEXT]
    for value in sorted(values, key=len, reverse=True):
        beginning = beginning.replace(value, REDACTED)
    if len(text) > LONGEST_TEXT:  # at its end may be the beginning of a secret
        beginning = beginning[: max(0, len(beginning) - max(map(len, values), default=0))] + "…"
    return without_shapes(beginning)


def _configurations(manifest: Any) -> Iterator[dict[str, Any]]:
    """Return the settings of launches in a pod's variables."""
    spec = manifest.get("spec") if isinstance(manifest, dict) else None
    containers = spec.get("containers") if isinstance(spec, dict) else None
    for container in containers or ():
        for variable in (container.get("env") if isinstance(container, dict) else None) or ():
            if isinstance(variable, dict) and variable.get("name") == CONFIG_VARIABLE:
                yield _object_in(variable.get("value"))


def _object_in(text: Any) -> dict[str, Any]:
    try:
        found = json.loads(str(text))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _without(version: str) -> tuple[str, tuple[PlainSecret, ...]]:
    # The same ones are looked at with each decision; of those that are very long few are remembered.
    return _of_short(version) if len(version) <= _SHORT else _of_long(version)


def _find(version: str) -> tuple[str, tuple[PlainSecret, ...]]:
    try:
        fields = json.loads(version) if version else None
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        return without_shapes(version), ()
    found: list[PlainSecret] = []
    shown = {path: _shown(value, f"spec.{path}", path, found.append) for path, value in fields.items()}
    return (json.dumps(shown, sort_keys=True, separators=(",", ":")) if found else version), tuple(found)


_of_short, _of_long = lru_cache(1024)(_find), lru_cache(8)(_find)
Note = Callable[[PlainSecret], None]


def _shown(value: Any, field: str, place: str, note: Note) -> Any:
    """Return a part of a version without its secrets, each of which is noted."""
    if isinstance(value, str):
        return _shown_text(value, field, place, note)
    if isinstance(value, list):
        if all(isinstance(each, str) for each in value):
            return _shown_words(value, field, place, note)
        return [_shown(each, _item(field, number, each), place, note) for number, each in enumerate(value)]
    if not isinstance(value, dict):
        return value
    if place in _MAPS:
        return {name: _shown_named(name, text, f"{field}[{name}]", place, note) for name, text in value.items()}
    shown = {name: _shown(each, f"{field}.{name}", place, note) for name, each in value.items() if name != "value"}
    if "value" in value:  # a variable of a container
        name = str(value.get("name", ""))
        shown["value"] = _shown_named(name, value["value"], f"{field}.value", place, note)
    return {name: shown[name] for name in value}


def _shown_named(name: str, value: Any, field: str, place: str, note: Note) -> Any:
    if isinstance(value, str) and names_a_secret(name) and is_literal(value):
        note(PlainSecret(field, place, value))
        return REDACTED
    return _shown(value, field, place, note)


def _shown_text(text: str, field: str, place: str, note: Note) -> str:
    shown, secrets = split_shapes(text)
    for secret in secrets:
        note(PlainSecret(field, place, secret))
    return shown


def _shown_words(words: list[str], field: str, place: str, note: Note) -> list[str]:
    """Return arguments without those that an option like ``--password`` is given."""
    shown: list[str] = []
    for number, (option, word) in enumerate(_with_options(words)):
        at = f"{field}[{number}]"
        name, equals, given = word.partition("=")
        if option and is_literal(word):
            note(PlainSecret(at, place, word))
            shown.append(REDACTED)
        elif equals and _is_secret_option(name) and is_literal(given):
            note(PlainSecret(at, place, given))
            shown.append(f"{name}={REDACTED}")
        else:
            shown.append(_shown_text(word, at, place, note))
    return shown


def _with_options(words: list[str]) -> Iterator[tuple[str, str]]:
    """Return each word with the option before it that says that this word is a secret, empty if there is none."""
    option = ""
    for word in words:
        # A value may start with one hyphen; two of them are the next option, after a switch like --use-token.
        yield ("" if word.startswith("--") else option), word
        option = word if "=" not in word and _is_secret_option(word) else ""


def _is_secret_option(word: str) -> bool:
    return word.startswith("-") and names_a_secret(word)


def _item(field: str, number: int, item: Any) -> str:
    name = item.get("name") if isinstance(item, dict) else None
    return f"{field}[{name if isinstance(name, str) and name else number}]"


# --- a version that is run again ---


def _filled(recorded: Any, present: Any, field: str, place: str) -> Any:
    if isinstance(recorded, str):
        return _filled_text(recorded, present, field)
    if isinstance(recorded, dict):
        return _filled_object(recorded, present if isinstance(present, dict) else {}, field, place)
    if isinstance(recorded, list):
        others = present if isinstance(present, list) else []
        if all(isinstance(each, str) for each in recorded):
            return _filled_words(recorded, [each for each in others if isinstance(each, str)], field, place)
        return [
            _filled(each, _alike(each, number, others), _item(field, number, each), place)
            for number, each in enumerate(recorded)
        ]
    return recorded


def _filled_object(recorded: dict[str, Any], present: dict[str, Any], field: str, place: str) -> dict[str, Any]:
    if recorded.get("value") == REDACTED and "valueFrom" in present:
        # Moved to where it belongs, which is as good for the previous version.
        kept = {name: each for name, each in recorded.items() if name != "value"}
        return {**kept, "valueFrom": present["valueFrom"]}
    joint = ("[", "]") if place in _MAPS else (".", "")
    return {
        name: _filled(each, present.get(name), f"{field}{joint[0]}{name}{joint[1]}", place)
        for name, each in recorded.items()
    }


def _filled_text(recorded: str, present: Any, field: str) -> str:
    if REDACTED not in recorded:
        return recorded
    if not isinstance(present, str):
        raise SecretGoneError(field)
    if recorded == REDACTED:
        return present
    parts, secrets = recorded.split(REDACTED), secrets_of(present)
    if len(parts) != len(secrets) + 1:
        raise SecretGoneError(field)
    return "".join(part + secret for part, secret in zip(parts, (*secrets, ""), strict=True))


def _filled_words(recorded: list[str], present: list[str], field: str, place: str) -> list[str]:
    known = dict(zip(_keys(_shown_words(present, field, place, lambda _: None)), present, strict=True))
    filled: list[str] = []
    for number, key in enumerate(_keys(recorded)):
        word = recorded[number]
        if REDACTED in word:
            if key not in known:
                raise SecretGoneError(f"{field}[{number}]")
            word = known[key]
        filled.append(word)
    return filled


def _keys(shown: list[str]) -> list[tuple[str, str, int]]:
    """Return what finds each word of one list of arguments in another: its option, and which of equal ones it is."""
    keys: list[tuple[str, str, int]] = []
    count: dict[tuple[str, str], int] = {}
    for option, word in _with_options(shown):
        count[option, word] = count.get((option, word), 0) + 1
        keys.append((option, word, count[option, word]))
    return keys


def _alike(item: Any, number: int, others: list[Any]) -> Any:
    """Return the object of the same name in another list, that at the same place if they have no names."""
    if not isinstance(item, dict) or "name" not in item:
        return others[number] if number < len(others) else None
    return next((each for each in others if isinstance(each, dict) and each.get("name") == item["name"]), None)
