"""Configures logging: JSON for machines or text for people, one line per decision. Writes to standard error."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import msgspec
import structlog

from tidegate_spark.contract.secret_shapes import without_shapes


def configure_logging(form: str, level: str) -> None:
    """Send structlog's and the libraries' log records to standard error.

    Args:
        form: ``json`` or ``console``.
        level: debug, info, warning or error.
    """
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
        if form == "console"
        else structlog.processors.JSONRenderer(serializer=_to_json)
    )
    trace = () if form == "console" else (structlog.processors.format_exc_info,)
    structlog.configure(
        processors=[*shared, *trace, renderer, _without_secrets],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *trace, renderer, _without_secrets],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    # Libraries log internals at level INFO; their warnings and errors are always logged.
    root.setLevel(max(number, logging.WARNING) if number > logging.DEBUG else number)


def _without_secrets(_logger: Any, _method: str, line: Any) -> Any:
    """Return a finished line without what has the shape of a secret, whoever wrote it: an exception's trace, too."""
    return without_shapes(line) if isinstance(line, str) else line


def _to_json(line: Any, default: Any, **_: Any) -> str:
    # Much faster than the standard library, which is used for what it refuses: lone surrogates, odd keys.
    try:
        return msgspec.json.encode(line, enc_hook=default).decode()
    except (TypeError, ValueError, RecursionError):
        return json.dumps(line, default=default)
