"""What a process has shown by its batches, for an operator that learns of it only from the termination message. Pure.

The operator's gate goes by the same while it hears of a version under test (`app/rules/upgrade/gate`).
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate_spark.contract.protocol import MOST_WORKED, AgentReport, Worked


def with_shown(known: Iterable[Worked], report: AgentReport, since: float) -> tuple[Worked, ...]:
    """Return what is known with what a process shows now.

    Args:
        known: what it and those before it have shown.
        report: how its queries are. While one of them has failed, or is paused, or has not begun, nothing is shown.
        since: when the process began.
    """
    if not report.ready or report.control.paused or any(query.failed for query in report.queries):
        return tuple(known)
    active = [query for query in report.queries if query.active]
    # One that waits for input holds up none of the others, however few batches it has.
    at_work = [query.committed for query in active if query.at_batch or query.lag_rows > 0]
    shown = (Worked(min((query.committed, *at_work)), since, query.last_commit_time) for query in active)
    return _most((*known, *(each for each in shown if each.batches > 0)))


def _most(worked: Iterable[Worked]) -> tuple[Worked, ...]:
    """Return those that show more than each other one, by number, by time or by the duration until then."""
    most: list[Worked] = []
    for each in sorted(worked, key=lambda one: (-one.batches, -one.until, one.since)):
        if not any(one.until >= each.until and one.until - one.since >= each.until - each.since for one in most):
            most.append(each)
    # By the duration after the first: many batches of the first hour say less of a test that is over than days of work.
    longest = sorted(most[1:], key=lambda one: one.since - one.until)[: MOST_WORKED - 1]
    return tuple(each for each in most if each is most[0] or each in longest)
