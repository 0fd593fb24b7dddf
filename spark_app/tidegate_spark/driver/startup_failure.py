"""The termination message of a driver that could not start. Pure; standard library only.

It repeats the form of :class:`tidegate_spark.contract.protocol.Termination`, because a failed import is one of the
things it reports.
"""

import json

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.process import start_messages as messages

TERMINATION_LOG = "/dev/termination-log"
LONGEST_MESSAGE = 500
"""Characters; as JSON escapes they still fit into a termination message."""


def startup_termination(error: BaseException, config_text: str) -> str:
    """Return the termination message, as JSON, for the exception that kept the driver from starting.

    Args:
        error: the exception.
        config_text: the driver's configuration as it was given, usable or not; read for the epoch.
    """
    reason = reason_of(error)
    return json.dumps(
        {
            "reason": reason,
            "message": messages.could_not_start(error)[:LONGEST_MESSAGE],
            # Of an exception of ours the reason says more than its class.
            "exception": type(error).__name__ if reason is Reason.APPLICATION_FAILED else "",
            "epoch": _epoch(config_text),
            "batches": {},
            "boundary": True,
            "given_up": False,
            "batch_failed": False,
            "failures": [],
            "committed": 0,
            "adopt_epoch": 0,
            "adopt_lineage": 0,
            "adopt_opening": False,
            "adopt_found": False,
            "adopted_from": "",
            "rehearsal": None,
            "repartition": None,
            "worked": [],
        }
    )


def reason_of(error: BaseException) -> Reason:
    """Return the reason that an exception has, which is the application's failure where it has none of ours."""
    reason = getattr(error, "reason", None)
    return reason if isinstance(reason, Reason) else Reason.APPLICATION_FAILED


def exit_code_of(error: BaseException) -> int:
    """Return with which code the process ends: 0 where another start in this pod would change nothing."""
    return 0 if reason_of(error) is Reason.CONFIGURATION_CHANGED else 1


def _epoch(config_text: str) -> int:
    try:
        epoch = json.loads(config_text)["epoch"]
    except (ValueError, TypeError, KeyError):
        return 0
    return epoch if isinstance(epoch, int) else 0
