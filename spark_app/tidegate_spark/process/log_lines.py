"""Configures the runtime's own logger: text for people, or a JSON object per line. Writes to standard error.

Output of the script, of Spark and of its JVM stays as it is.
"""

from __future__ import annotations

import datetime
import json
import logging
import os
from collections.abc import Mapping
from typing import Any

from tidegate_spark.contract.protocol import (
    CONFIG_VARIABLE,
    EXECUTOR_CONFIG_VARIABLE,
    LOG_FORMAT_JSON,
    LOG_FORMAT_VARIABLE,
)
from tidegate_spark.contract.secret_shapes import without_shapes

FIELDS = ("action", "reason")
"""What a line may carry beside its words, as ``extra``: what is done, and the word for why."""


class JsonLines(logging.Formatter):
    """Each record as one JSON object, with the keys of the operator's log."""

    def __init__(self, context: Mapping[str, Any]) -> None:
        """Add ``context`` to each line."""
        super().__init__()
        self._context = dict(context)

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        time = datetime.datetime.fromtimestamp(record.created, datetime.timezone.utc)  # noqa: UP017 - Python 3.10
        line = {
            **self._context,
            "timestamp": time.isoformat().replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **{name: getattr(record, name) for name in FIELDS if hasattr(record, name)},
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return without_shapes(json.dumps(line, default=str))


class TextLines(logging.Formatter):
    """Each record as text."""

    def __init__(self) -> None:
        """Have each line begin as people know it."""
        super().__init__("%(asctime)s tidegate %(levelname)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return without_shapes(super().format(record))


class OwnHandler(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to the process's standard error, whatever the script makes of ``sys.stderr``."""

    def __init__(self) -> None:
        """Have a stream of its own, which leaves the file open when it ends."""
        super().__init__(open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False))  # noqa: SIM115

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the library's name
        """Do without the line: a driver that cannot write goes on."""


class OwnLogger(logging.Logger):
    """A logger that a script's own configuration of logging does not reach.

    ``dictConfig`` and ``fileConfig`` disable all loggers that they do not name unless they are configured not to, and
    ``logging.disable`` those of the whole process. Scripts that log by another library go through all loggers and take
    their handlers and levels away, or have records made by a factory of their own, which may fail in our threads.
    """

    own: OwnHandler

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - the library's name
        """Go by one level for good, also if somebody disabled it."""
        return level >= logging.INFO

    def makeRecord(  # noqa: N802, PLR0913, PLR0917 - the library's name and arguments
        self,
        name: str,
        level: int,
        fn: str,
        lno: int,
        msg: object,
        args: Any,
        exc_info: Any,
        func: str | None = None,
        extra: Mapping[str, object] | None = None,
        sinfo: str | None = None,
    ) -> logging.LogRecord:
        """Return the library's record, whatever makes those of other loggers."""
        record = logging.LogRecord(name, level, fn, lno, msg, args, exc_info, func, sinfo)
        vars(record).update(extra or {})
        return record

    def handle(self, record: logging.LogRecord) -> None:
        """Have the own handler write it, and no other one, past all filters."""
        self.own.handle(record)


def log_to_stderr(variables: Mapping[str, str] = os.environ) -> None:
    """Give the runtime's own messages a handler of their own; the script's logging stays the script's.

    Args:
        variables: have the format, and whose process this is.
    """
    handler = OwnHandler()
    is_json = variables.get(LOG_FORMAT_VARIABLE) == LOG_FORMAT_JSON
    handler.setFormatter(JsonLines(context_of(variables)) if is_json else TextLines())
    log = logging.getLogger("tidegate")
    # It is in no list of handlers, where a script would find it.
    vars(log)["own"] = handler
    log.__class__ = OwnLogger  # modules have it since their import


def context_of(variables: Mapping[str, str]) -> dict[str, Any]:
    """Return namespace, application and epoch, as far as a process's configuration has them; pure."""
    text = variables.get(CONFIG_VARIABLE) or variables.get(EXECUTOR_CONFIG_VARIABLE) or "{}"
    try:
        config = json.loads(text)
    except ValueError:
        return {}  # whoever needs the configuration says what is wrong with it
    names = ("namespace", "app", "epoch")
    return {name: config[name] for name in names if name in config} if isinstance(config, dict) else {}
