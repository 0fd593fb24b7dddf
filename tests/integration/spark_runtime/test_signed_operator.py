"""A driver's real process and the operator's real client: who looks and who gives orders. It needs no storage."""

import asyncio
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidegate.agent import client as agent_client
from tidegate.agent.client import AgentClient, Unanswered
from tidegate.agent.session import launch_of
from tidegate_spark.contract.protocol import AgentReport, Storage
from tidegate_testing.driver_process import DriverProcess, driver_config
from tidegate_testing.observations import KEYS, app_with, launched, running_driver
from tidegate_testing.waiting import wait_for

POD = running_driver(launched(app_with()), ip="127.0.0.1", signs=True)
LAUNCH = launch_of(POD)
KEY = (POD.namespace, POD.app)
TOKEN = KEYS.inspection_token(LAUNCH)


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DriverProcess]:
    """A driver with the files that its pod mounts."""
    main = tmp_path / "main.py"
    main.write_text("")
    config = driver_config(POD.app, f"local://{main}", Storage("s3://bucket/app"), uid=POD.app_uid, epoch=POD.epoch)
    config = dataclasses.replace(config, namespace=POD.namespace, agent_secret=POD.agent_secret)
    number = KEYS.number(LAUNCH)
    made = DriverProcess(config, tmp_path / "driver", tmp_path / "jars", token=TOKEN, operator=number)
    made.start()
    monkeypatch.setattr(agent_client, "COMMAND_PORT", made.command_port)
    assert made.process is not None
    yield made
    made.process.terminate()
    made.process.wait(120)


async def asked() -> AgentReport | Unanswered:
    async with AgentClient(KEYS, 1) as client:
        return await client.read_progress(KEY, POD)


async def ordered(executors: int) -> Unanswered | None:
    async with AgentClient(KEYS, 1) as client:
        return await client.set_executors(KEY, POD, executors)


def test_the_operator_asks_and_orders_and_who_has_the_token_looks_and_orders_nothing(driver: DriverProcess) -> None:
    def reported() -> AgentReport | None:
        found = asyncio.run(asked())
        return found if isinstance(found, AgentReport) else None

    first = wait_for("a report", reported, timeout=120, interval=0.2)
    assert first is not None
    assert first.uid == POD.app_uid
    order = {"instances": 7}
    assert driver.command("POST", "/v1/executors", order, token=TOKEN)[0] == 403
    assert driver.command("POST", "/v1/stop", {}, token=TOKEN)[0] == 403
    assert driver.command("GET", "/v1/progress", token=TOKEN)[0] == 200
    assert driver.command("GET", "/v1/progress", token="guess")[0] == 401
    wait_for("the order to be taken", lambda: asyncio.run(ordered(3)) is None, timeout=60, interval=0.2)
    wait_for("the number to be told", lambda: reported_number(reported()) == 3, timeout=60, interval=0.2)


def reported_number(report: AgentReport | None) -> int:
    return report.executors_wanted if report is not None else -1
