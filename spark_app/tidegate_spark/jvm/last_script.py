"""Keeps which settings the script asked for, for a JVM that is started ahead of the script.

It is only a guess: a JVM with other settings than the script then asks for is ended. Settings that look like a secret
are not kept. Does file I/O; standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tidegate_spark.process.redaction import values_of_launch, without_secrets

NAME = "script-asked"


@dataclass(frozen=True)
class Asked:
    """What a script made of the start of Spark."""

    settings: Mapping[str, str] = field(default_factory=dict)
    """Those that are used."""
    variables: Mapping[str, str | None] = field(default_factory=dict)
    """Of the environment, that it set or, None, removed before it asked for Spark."""

    def over(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return ``variables`` as the script leaves them."""
        changed = {**variables, **self.variables}
        return {name: value for name, value in changed.items() if value is not None}


def difference(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str | None]:
    """Return what was set or removed in an environment."""
    names = sorted(before.keys() | after.keys())
    return {name: after.get(name) for name in names if before.get(name) != after.get(name)}


def read(directory: str) -> Asked:
    """Return what was kept in the work directory; nothing if there is nothing that can be read."""
    try:
        found = json.loads((Path(directory) / NAME).read_text(encoding="utf-8"))
        return Asked(dict(found["settings"]), dict(found["variables"]))
    except (OSError, ValueError, KeyError, TypeError):
        return Asked()


def keep(directory: str, asked: Asked) -> None:
    """Keep it for the next process of the pod; nothing if a variable looks like a secret, or it cannot be written."""
    path = Path(directory) / NAME
    texts = {name: value for name, value in asked.variables.items() if value is not None}
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
        if values_of_launch(texts, ()):
            return  # a JVM without it would be another one
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump({"settings": without_secrets(asked.settings), "variables": dict(asked.variables)}, file)
