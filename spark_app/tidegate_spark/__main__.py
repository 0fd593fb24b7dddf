"""``python3 -m tidegate_spark``: the driver's entry point. Does I/O.

Any failure to start (no PySpark, an old Python, a broken package, no configuration) becomes the termination message. So
this module imports the standard library only, and the rest inside the guard. Its first act is to hold a stop.
"""

# ruff: noqa: E402 - a stop is held before anything else is imported
from tidegate_spark.process.held_signals import hold_stops

hold_stops()

import contextlib
import os
import sys
import traceback

from tidegate_spark.contract.secret_shapes import without_shapes
from tidegate_spark.driver.startup_failure import TERMINATION_LOG, exit_code_of, startup_termination
from tidegate_spark.process import start_messages as messages

OLDEST_PYTHON = (3, 10)
_HASHES = "PYTHONHASHSEED"


def main() -> int:
    """Run the driver, which ends the process; return only if it could not be started."""
    try:
        if sys.version_info[:2] < OLDEST_PYTHON:
            found = f"{sys.version_info[0]}.{sys.version_info[1]}"
            raise RuntimeError(messages.python_too_old(found))
        _have_hashes_of_spark_submit()
        from tidegate_spark.driver.first_process import go_on_in_child  # noqa: PLC0415 - inside the guard, as all below

        stops = go_on_in_child()
        from tidegate_spark.driver.start import start  # noqa: PLC0415

        start(stops)
    except BaseException as error:  # every end must leave a word, whatever its cause
        traceback.print_exc()
        _leave(_without_secrets(startup_termination(error, os.environ.get("TIDEGATE_CONFIG", ""))))
        return exit_code_of(error)
    return 1


def _have_hashes_of_spark_submit() -> None:
    """Have texts hash the same in each process, as ``spark-submit`` does: begins this process again if they do not.

    A script may make a name of a query, or a location, of ``hash(...)``, which its next process has to find again.
    """
    if _HASHES in os.environ or not sys.executable:
        return
    os.environ[_HASHES] = "0"
    with contextlib.suppress(OSError):
        os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - the program that runs already


def _without_secrets(message: str) -> str:
    try:
        from tidegate_spark.process.redaction import Secrets, secret_values  # noqa: PLC0415 - may be what is broken

        return Secrets(secret_values(os.environ)).clean(message)
    except Exception:  # then it knows no values
        return without_shapes(message)


def _leave(message: str) -> None:
    try:
        with open(os.environ.get("TIDEGATE_TERMINATION_LOG", TERMINATION_LOG), "w", encoding="utf-8") as file:
            file.write(message)
    except OSError as error:
        sys.stderr.write(f"termination message: {error}\n")


if __name__ == "__main__":
    sys.exit(main())
