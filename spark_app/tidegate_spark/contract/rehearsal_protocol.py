"""The contract about rehearsals: what one is to do, and its result. Standard library only, no I/O.

A rehearsal is a driver process of a version that is not in force: it runs a few batches on a copy of the state, in a
place of its own, with its outputs suppressed.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from tidegate_spark.contract.json_form import OpenEnum
from tidegate_spark.contract.object_paths import Storage
from tidegate_spark.contract.reasons import Reason

REHEARSAL_MODULE = "tidegate_spark.rehearse"
"""What a rehearsal's pod runs. Not the module of drivers: a runtime that is older than rehearsals would take the
configuration for an ordinary one, and its outputs would be real."""

REHEARSAL_PREFIX = "rehearsals"
"""``rehearsals/<id of the snapshot>/``: everything a rehearsal writes. It goes with that snapshot."""

REHEARSAL_VARIABLE = "TIDEGATE_REHEARSAL"
"""Environment variable of the driver's process and of its Python workers: ``1`` in a rehearsal. The runtime sets it."""

MASTER_VARIABLE = "TIDEGATE_MASTER"
"""Environment variable with Spark's master, if that is not the cluster: rehearsals have no executors."""


@dataclass(frozen=True)
class Rehearsal:
    """What a rehearsal is to do."""

    batches: int
    """So many of each query, without a failure, are enough."""
    timeout_seconds: int
    """From the beginning of its process."""
    queries: tuple[str, ...] = ()
    """Those of the previous version: as long as there is time, the new one is waited for to start them, too."""


class RehearsalResult(OpenEnum):
    """What a rehearsal says of the version."""

    PASSED = "Passed"
    FAILED = "Failed"
    INCONCLUSIVE = "Inconclusive"
    """Nothing, for or against it."""
    UNKNOWN = "Unknown"
    """Any result of a newer runtime that is not known here."""


@dataclass(frozen=True)
class RehearsalEnd:
    """The part of a rehearsal's termination message that a driver's has not."""

    result: RehearsalResult
    what: Reason = Reason.NONE
    committed: dict[str, int] = field(default_factory=dict)
    """How many batches each query has committed."""


def rehearsal_place(storage: Storage, snapshot: str) -> Storage:
    """Return the place of the rehearsal on a snapshot of the application whose place is ``storage``."""
    return dataclasses.replace(storage, uri=f"{storage.uri}/{REHEARSAL_PREFIX}/{snapshot}")
