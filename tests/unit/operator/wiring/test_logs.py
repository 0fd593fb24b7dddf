"""The operator's log: lines for machines, each of which tells whose it is. Runs a small process for the real output."""

import json
import subprocess
import sys
from typing import Any

import msgspec
import structlog
from structlog.testing import capture_logs

from tidegate.api.streaming_app import StreamingApp
from tidegate.app.act import ActionExecutor
from tidegate.app.actions import Plan, RememberReported, WriteStatus
from tidegate.app.reconcile import Reconciler
from tidegate.app.rules.plan import decide
from tidegate.cache.index import Index
from tidegate.engine.resource_key import Key
from tidegate.engine.rules.actions import EnsureAccess
from tidegate.engine.workqueue import WorkQueue
from tidegate.kube.failures import Unavailable
from tidegate.wiring.metrics import OperatorMetrics
from tidegate_spark.contract.protocol import QueryReport
from tidegate_spark.contract.reasons import ForeignReason
from tidegate_testing.observations import NOW, app_with, launched, observe, report_of, running_driver

KEY: Key = ("shop", "orders")
APP = launched(app_with(), 7)
OF_AN_ACTION = {"namespace": "shop", "app": "orders", "epoch": 7, "action": "EnsureAccess", "reason": "Deleting"}


class Access:
    """Makes the driver's access, or does not."""

    def __init__(self, answer: Unavailable | None = None) -> None:
        self.answer = answer

    async def ensure(self, app: StreamingApp) -> Unavailable | None:
        return self.answer


async def lines_of(access: Access, *actions: Any) -> list[dict[str, Any]]:
    """Return what is logged when a worker carries out a plan, as the processors of the real log see it."""
    nothing: Any = None
    manager: Any = access
    actor = ActionExecutor(nothing, nothing, Index(), manager, nothing, nothing, OperatorMetrics(), lambda key: None)

    async def work(key: Key) -> None:
        structlog.contextvars.bind_contextvars(reason="Deleting")
        await actor.carry_out(APP, Plan("release", ForeignReason("Deleting"), "message", actions), NOW)
        queue.stop()

    queue = WorkQueue(work, OperatorMetrics(), lambda: 0.0)
    queue.wake(KEY)
    with capture_logs([structlog.contextvars.merge_contextvars]) as lines:
        await queue._run_once(KEY)
    return [dict(line) for line in lines]


async def test_a_line_of_an_action_tells_application_epoch_action_and_reason() -> None:
    (line,) = await lines_of(Access(), EnsureAccess())
    assert {key: line[key] for key in OF_AN_ACTION} == OF_AN_ACTION
    assert line["log_level"] == "info"


async def test_so_does_the_line_of_an_action_that_could_not_be_carried_out() -> None:
    (line,) = await lines_of(Access(Unavailable("no answer")), EnsureAccess())
    assert {key: line[key] for key in OF_AN_ACTION} == OF_AN_ACTION
    assert (line["event"], line["log_level"]) == ("tried again later", "warning")
    assert "no answer" in line["why"]


async def test_what_an_action_left_bound_does_not_reach_the_next_application() -> None:
    await lines_of(Access(Unavailable("no answer")), EnsureAccess())
    (line,) = [line for line in await lines_of(Access(), RememberReported(7, 1)) if line["event"] == "carried out"]
    assert line["action"] == "RememberReported"
    assert structlog.contextvars.get_contextvars().get("action") is None


async def test_bookkeeping_is_not_told_on_a_quiet_day() -> None:
    (line,) = await lines_of(Access(), RememberReported(7, 1))
    assert line["log_level"] == "debug"


class Done:
    """Carries out plans without doing anything."""

    async def carry_out(self, app: StreamingApp, plan: Plan, now: float) -> None:
        return None


async def decided(app: StreamingApp, batch: int) -> tuple[StreamingApp, list[dict[str, Any]]]:
    """Return an application as a look at its running driver leaves it, and what is logged of the decision."""
    nothing: Any = None
    done: Any = Done()
    driver = running_driver(app)
    query = QueryReport("main", active=True, batch_id=batch)
    report = report_of(driver, queries=(query,), executors_running=1)
    plan = decide(observe(app, driver=driver, agent=report), NOW)
    reconciler = Reconciler(Index(), nothing, done, nothing, OperatorMetrics(), nothing)
    with capture_logs([structlog.contextvars.merge_contextvars]) as lines:
        await reconciler._carry_out(app, plan, NOW)
    written = [action.status for action in plan.actions if isinstance(action, WriteStatus)]
    return msgspec.structs.replace(app, status=written[-1]), [dict(line) for line in lines]


async def test_a_decision_to_write_new_figures_alone_is_not_told_on_a_quiet_day() -> None:
    """Of three hundred applications that are well it would be told three hundred times a minute."""
    running, (line,) = await decided(APP, 3)
    assert (line["log_level"], line["reason"]) == ("info", "Running")
    _, (line,) = await decided(running, 4)
    assert line["actions"] == ["WriteStatus"]
    assert line["log_level"] == "debug"


PROGRAM = """
import logging
import structlog
from tidegate.wiring.logs import configure_logging
configure_logging("json", "info")
structlog.contextvars.bind_contextvars(namespace="shop", app="orders", epoch=7)
log = structlog.get_logger()
log.info("carried out", action="CreateDriver", reason="Launching")
log.debug("not told")
try:
    raise ValueError("two\\nlines")
except ValueError:
    log.exception("reconcile failed")
logging.getLogger("kopf").warning("a library's %s", "words")
"""


def test_every_line_of_the_log_is_one_json_object_also_with_a_traceback_and_from_libraries() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["event"] for line in lines] == ["carried out", "reconcile failed", "a library's words"]
    common = {"namespace": "shop", "app": "orders", "epoch": 7}
    assert all(line.items() >= common.items() and line["timestamp"] and line["level"] for line in lines)
    assert (lines[0]["action"], lines[0]["reason"]) == ("CreateDriver", "Launching")
    assert "ValueError: two\nlines" in lines[1]["exception"]
