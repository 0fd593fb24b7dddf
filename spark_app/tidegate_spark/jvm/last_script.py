"""Keeps the settings that the script asked for: the next JVM is started with them, ahead of the script.

It is only a guess: a JVM with other settings than the script then asks for is ended. Settings that look like a secret
are not kept; variables of the script's never reach the JVM. Does file I/O; standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tidegate_spark.process.redaction import without_secrets

NAME = "script-asked"


@dataclass(frozen=True)
class Asked:
    """What a script made of the start of Spark."""

    settings: Mapping[str, str] = field(default_factory=dict)
    """Those that are used."""


def read(directory: str) -> Asked:
    """Return what was kept in the work directory; nothing if there is nothing that can be read."""
    try:
        found = json.loads((Path(directory) / NAME).read_text(encoding="utf-8"))
        return Asked(dict(found["settings"]))
    except (OSError, ValueError, KeyError, TypeError):
        return Asked()


def keep(directory: str, asked: Asked) -> None:
    """Keep it for the next process of the pod; nothing if it cannot be written."""
    path = Path(directory) / NAME
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump({"settings": without_secrets(asked.settings)}, file)
