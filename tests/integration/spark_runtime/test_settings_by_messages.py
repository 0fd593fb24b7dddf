"""The sample whose settings are control messages, killed in between: it decides what the oracle decides."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from devcluster import kafka
from devcluster.demo.compare import compare, read_topic
from devcluster.demo.oracle import expected_decisions
from devcluster.demo.replay import create_topics
from devcluster.demo.scenario import Reading, Scenario, Setting, encode
from devcluster.site import LocalSite
from tidegate_spark.contract.control_protocol import CONTROL_COMMAND, ControlOrder, ControlOrders, MessageState
from tidegate_spark.contract.protocol import to_json
from tidegate_testing.driver_process import DriverProcess
from tidegate_testing.waiting import wait_for

from .conftest import StartDriver

SAMPLE = Path(__file__).parents[3] / "spark_app" / "samples" / "temperature_control.py"
SCENARIO = Scenario(readings=720, shifts=15)


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with LocalSite() as site:
        kafka.up(site)
        yield site.kafka_host


class Sending:
    """A producer that sends a reading when the settings of before are in the log, as the sample wants it."""

    def __init__(self, brokers: str, driver: DriverProcess) -> None:
        self.driver = driver
        self._producer = Producer({"bootstrap.servers": brokers, "enable.idempotence": True, "acks": "all"})
        self._given: list[ControlOrder] = []
        self._held: list[Setting] = []

    def send(self, record: Reading | Setting) -> None:
        """Send one record, or keep a setting until a reading needs it."""
        if isinstance(record, Setting):
            self._held.append(record)
            return
        if self._held:
            self._give()
        self._producer.produce("readings", encode(record), record.sensor)

    def finish(self) -> None:
        """Have everything confirmed."""
        assert self._producer.flush(30) == 0

    def _give(self) -> None:
        payload = json.dumps({"settings": [setting.fields() for setting in self._held]})
        self._given.append(ControlOrder(f"settings-{len(self._given)}", "settings", payload))
        self._held.clear()
        wait_for(f"{len(self._given)} messages in the log", self._are_logged, 600, 0.1)

    def _are_logged(self) -> bool:
        """Offer all again, as an operator does to a process that is new; say whether the log has them."""
        report = self.driver.report()
        known = {each.id: each.state for each in report.control.messages} if report is not None else {}
        assert MessageState.REJECTED not in known.values(), report
        missing = tuple(order for order in self._given if order.id not in known)
        if missing and report is not None:
            self.driver.command("POST", CONTROL_COMMAND, json.loads(to_json(ControlOrders(missing))))
        return not missing


@pytest.mark.long
def test_settings_that_come_as_messages_rule_the_readings_that_follow_also_after_a_crash(
    start_driver: StartDriver, broker: str
) -> None:
    create_topics(broker, {"readings": 4, "decisions": 2})
    args = ("--brokers", broker, "--trigger", "200 milliseconds", "--settings-from", "messages")
    driver = start_driver("app", f"local://{SAMPLE}", args=args)
    driver.await_batch(0, "decisions")
    sending = Sending(broker, driver)
    for number, record in enumerate(SCENARIO.records()):
        if number == SCENARIO.readings // 2:
            driver.kill()
            sending.driver = driver = start_driver("app", f"local://{SAMPLE}", args=args, epoch=2)
        sending.send(record)
    sending.finish()
    expected = expected_decisions(SCENARIO.records())

    def decided() -> bool:
        driver.must_run()
        return expected.keys() <= {each["id"] for each in read_topic(broker, "decisions")}

    wait_for("all decisions", decided, 600, 1.0)
    comparison = compare(expected, read_topic(broker, "decisions"))
    assert comparison.ok, comparison.report()
    assert comparison.expected > 30
