"""The patterns as parameters of tests: those that stand for the others run in ``make test``, the others are long."""

from typing import Any

import pytest

from tests.compatibility.patterns import Outcome, load


def cases(outcome: Outcome) -> list[Any]:
    """Return a parameter for each pattern with an outcome that runs on this machine, called as the pattern is."""
    return [
        pytest.param(each, id=each.name, marks=[] if each.representative else [pytest.mark.long])
        for each in load().of(outcome)
        if each.runs_on("local")
    ]


def cluster_cases(outcome: Outcome) -> list[Any]:
    """Return the same for a cluster; all of them are long, by the file that they are in."""
    return [pytest.param(each, id=each.name) for each in load().of(outcome) if each.runs_on("cluster")]
