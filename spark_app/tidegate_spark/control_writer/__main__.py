"""``python3 -m tidegate_spark.control_writer``: sends a control message through the storage. Does I/O."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tidegate_spark.control_writer import messages
from tidegate_spark.control_writer.errors import ControlWriterError, InvalidMessageError, NoOutcomeError
from tidegate_spark.control_writer.writer import OUTCOME_SECONDS, SOURCE, ControlWriter
from tidegate_spark.storage.s3_client import Credentials, mounted_credentials
from tidegate_spark.storage.store import ObjectStore

WRITTEN, UNWRITTEN, USAGE, UNTOLD, UNAPPLIED = 0, 1, 2, 3, 4
"""Exit codes."""
EPILOG = messages.epilog(WRITTEN, UNWRITTEN, USAGE, UNTOLD, UNAPPLIED)


def parser() -> argparse.ArgumentParser:
    """Return what understands the command line."""
    made = argparse.ArgumentParser(
        prog="python3 -m tidegate_spark.control_writer",
        description=messages.DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("address", metavar="ADDRESS", help="s3://bucket/prefix")
    made.add_argument("type", metavar="TYPE", help="of the message, such as reload-config")
    made.add_argument("payload", metavar="PAYLOAD", nargs="?", default="null", help="default: null")
    made.add_argument("--id", default="", help="of the message: sent again with it, it is the same one (default: new)")
    made.add_argument("--source", default=SOURCE, help="who sends it (default: %(default)s)")
    made.add_argument("--expires", type=float, metavar="SECONDS", help="until when it may come into force, from now")
    made.add_argument(
        "--wait",
        type=_seconds,
        nargs="?",
        const=OUTCOME_SECONDS,
        metavar="SECONDS",
        help=f"wait for its outcome (default, if given: {OUTCOME_SECONDS:.0f} s)",
    )
    made.add_argument(
        "--endpoint",
        default=os.environ.get("AWS_ENDPOINT_URL", ""),
        help="of the store, such as http://minio:9000 (default: AWS_ENDPOINT_URL, or Amazon's)",
    )
    made.add_argument("--region", default="", help="of the bucket (default: AWS_REGION, or us-east-1)")
    made.add_argument("--path-style", action="store_true", help="the bucket is in the path, not in the host's name")
    made.add_argument("--credentials", metavar="FOLDER", help="with files AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
    return made


def main(arguments: Sequence[str], store: ObjectStore | None = None) -> int:
    """Send, print what is known of it as JSON, and return the exit code.

    Args:
        arguments: the command line.
        store: the bucket, where it is reached by other means.
    """
    given = parser().parse_args(arguments)
    try:
        payload = _payload(given.payload)
        writer = ControlWriter(
            given.address,
            source=given.source,
            endpoint=given.endpoint,
            region=given.region,
            path_style_access=given.path_style,
            credentials=_credentials(given.credentials),
            store=store,
        )
    except (OSError, ValueError) as error:
        return _fail(USAGE, str(error))
    try:
        return _send(writer, given, payload)
    except InvalidMessageError as error:
        return _fail(USAGE, f"{error.reason}: {error}")
    except NoOutcomeError as error:
        return _fail(UNTOLD, str(error))
    except ControlWriterError as error:
        return _fail(UNWRITTEN, str(error))
    finally:
        # It is written, or was waited for as long as was asked.
        with contextlib.suppress(ControlWriterError):
            writer.close(0.0)


def _send(writer: ControlWriter, given: argparse.Namespace, payload: Any) -> int:
    name = writer.send(given.type, payload, id=given.id, expires=given.expires)
    if given.wait is None:
        writer.flush()
        _print({"id": name, "source": given.source})
        return WRITTEN
    outcome = writer.outcome(name, given.wait)
    _print({**dataclasses.asdict(outcome), "source": given.source})
    return WRITTEN if outcome.applied else UNAPPLIED


def _seconds(given: str) -> float:
    seconds = float(given)
    if not 0 <= seconds < float("inf"):
        raise ValueError(given)
    return seconds


_seconds.__name__ = "seconds"  # what argparse calls a value that is none


def _payload(given: str) -> Any:
    text = _payload_text(given)
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"PAYLOAD is not JSON: {error}; it was {text!r:.200}") from error


def _payload_text(given: str) -> str:
    if given == "-":
        return sys.stdin.read()
    return Path(given[1:]).read_text(encoding="utf-8") if given.startswith("@") else given


def _credentials(folder: str | None) -> Credentials | None:
    if folder is None:
        return None
    found = mounted_credentials(folder)
    if found is None:
        raise ValueError(f"--credentials: {folder} has no credentials")
    return found


def _print(reported: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(reported, ensure_ascii=False) + "\n")


def _fail(code: int, message: str) -> int:
    sys.stderr.write(f"{message}\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
