"""Schedules run without a log; the tests after them, in the same process, have theirs."""

from collections.abc import Iterator

import pytest
import structlog

from tests.scenario.reporting import quiet


@pytest.fixture
def quiet_log() -> Iterator[None]:
    """Have nothing logged until the test ends: others look into the log, in whatever order files run."""
    before = structlog.get_config()
    quiet()
    yield
    structlog.configure(**before)
