"""Commands of a driver's agent of which a test cares about some. No I/O."""

from typing import Any

from tidegate_spark.driver.agent.agent import Commands
from tidegate_spark.inspect.http import Reply


def commands(**cared_about: Any) -> Commands:
    """Return commands that do nothing, but for those given by name."""
    nothing: dict[str, Any] = {
        "stop": lambda: None,
        "set_executors": lambda number: None,
        "order_snapshots": lambda orders: None,
        "give_messages": lambda orders: None,
        "inspect": lambda target: Reply(404, "{}"),
    }
    return Commands(**nothing | cared_about)
