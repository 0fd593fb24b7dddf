"""What a script is given in the place of a query that is not started. Pure."""

from __future__ import annotations

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.process.outcome import Outcome


class QueryRefusedError(SystemExit):
    """A query that cannot be given a checkpoint of its own.

    Not an Exception: a script that catches those around ``start()`` would go on with one query less.
    """

    reason = Reason.QUERY_REFUSED


class StateRefusedError(QueryRefusedError):
    """A query that would read its state for something else."""

    reason = Reason.STATE_SCHEMA


class NotStartedError(QueryRefusedError):
    """A query that cannot be started for a reason that is not the script's."""

    def __init__(self, reason: Reason, message: str) -> None:
        """Say why."""
        super().__init__(message)
        self.reason = reason


class NotContinuedError(QueryRefusedError):
    """A query that failed and is started again, of which only the next process can know that it is the same one."""

    def __init__(self, outcome: Outcome) -> None:
        """Say how the driver ends: with the query's failure, as if nobody had started it again."""
        super().__init__(outcome.message)
        self.outcome = outcome


class DriverStoppingError(SystemExit):
    """``start()`` was called after the driver began to stop."""
