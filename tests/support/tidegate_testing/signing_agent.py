"""A driver's real agent with the keys of a launch, as its pod has them. HTTP on 127.0.0.1."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from prometheus_client import CollectorRegistry

from devcluster.control import free_port
from tidegate.access.keys import OperatorKeys
from tidegate_spark.contract.agent_protocol import Launch
from tidegate_spark.driver.agent.agent import Agent, Commands
from tidegate_spark.driver.agent.agent_gate import Gate
from tidegate_spark.process.environment import Environment
from tidegate_spark.process.redaction import Secrets
from tidegate_testing.agent_commands import commands
from tidegate_testing.observations import KEYS


@contextmanager
def signing_agent(
    folder: Path,
    launch: Launch,
    progress: Any,
    given: Commands | None = None,
    *,
    keys: OperatorKeys = KEYS,
    clock: Callable[[], float] = time.monotonic,
    port: int = 0,
) -> Iterator[int]:
    """Run one; yields its command port.

    Args:
        folder: for its files.
        launch: which it is of.
        progress: has ``report()``.
        given: what it has its driver do; nothing by default.
        keys: of the operator that launched it.
        clock: of its challenges.
        port: the one to listen at; 0: any.
    """
    (folder / "token").write_text(keys.inspection_token(launch))
    port = port or free_port()
    variables = {
        "TIDEGATE_BIND_ADDRESS": "127.0.0.1",
        "TIDEGATE_COMMAND_PORT": str(port),
        "TIDEGATE_STATUS_PORT": str(free_port()),
        "TIDEGATE_AGENT_TOKEN_FILE": str(folder / "token"),
    }
    gate = Gate(launch, keys.number(launch), clock)
    environment = Environment.read(variables)
    agent = Agent(environment, cast(Any, progress), CollectorRegistry(), given or commands(), Secrets(), gate)
    agent.start()
    try:
        yield port
    finally:
        agent.close()
