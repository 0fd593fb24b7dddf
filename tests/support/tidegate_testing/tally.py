"""An application on a real cluster that tallies the numbers of a topic, into which numbers flow all the time.

Whatever is done to it, its newest tally is of all numbers, each once.
"""

import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Producer

from devcluster.demo.replay import create_topics, delete_topics
from tidegate_testing.waiting import CannotComeError, wait_for
from tidegate_testing.world import World

RATE = 5.0
"""Numbers a second, while all goes on, unless a test wants another load: few, so that a busy machine keeps up."""
OVER = ("Completed", "RolledBack", "Refused", "Withdrawn")
"""Phases of an upgrade after which there is no other one."""


def has_ended(upgrade: dict[str, Any], after: int) -> bool:
    """Return whether an upgrade after that number is over; one that was deferred begins again by itself, and is not."""
    put_off = upgrade.get("reason") == "StatePartitionsKept"
    return upgrade.get("number", 0) > after and upgrade["phase"] in OVER and not put_off


class Flow:
    """Sends numbers all the time, while it is not held."""

    def __init__(self, brokers: str, topic: str) -> None:
        """Have sent none so far."""
        self.sent = 0
        self.rate = RATE
        self._topic = topic
        self._over = threading.Event()
        self._producer = Producer({"bootstrap.servers": brokers, "enable.idempotence": True, "acks": "all"})
        self._thread: threading.Thread | None = None

    def go_on(self) -> None:
        """Send more."""
        self.hold()
        self._over.clear()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def hold(self) -> int:
        """Send no more for now; return how many there were."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(60)
        assert self._producer.flush(60) == 0
        return self.sent

    def _run(self) -> None:
        while not self._over.wait(1 / self.rate):
            self._producer.produce(self._topic, key=str(self.sent), value=str(self.sent))
            self._producer.poll(0)
            self.sent += 1


@dataclass
class Tally:
    """The application and its numbers."""

    world: World
    namespace: str
    topic: str
    spec: dict[str, Any]
    work: float = 0.0
    """Seconds that each number takes an executor's core."""
    trigger: str = "4 seconds"
    """From one batch to the next, if they are shorter."""
    most: int = 2000
    """Numbers in a batch."""
    listens: bool = False
    """Whether it takes part in the control stream."""
    name: str = field(default_factory=lambda: f"tally-{secrets.token_hex(3)}")
    """Of this one alone: it finds neither state nor output of another test's."""
    flow: Flow = field(init=False)
    right: bool = False
    """Whether all was right at its last test's end: the next one may go on with it."""

    def status(self) -> dict[str, Any]:
        """Return its status.

        Raises:
            CannotComeError: it has failed for good, whatever is awaited of it.
        """
        return self.world.status(self.name, self.namespace)

    def begin(self) -> None:
        """Have it run, in a stable version, while numbers flow."""
        self.flow.go_on()
        if self.right:
            self.right = False
            return
        self.apply()
        self.await_stable()

    def apply(self) -> None:
        """Make it."""
        world, target = self.world, f"s3a://{self.world.bucket}/{self._output}"
        args = [world.environment.kafka_pods, self.topic, target, str(self.work), self.trigger, str(self.most)]
        args += ["listens"] if self.listens else []
        world.kubectl.apply(world.app(self.name, self.namespace, main="script:tallying.py", args=args, spec=self.spec))

    def await_stable(self) -> None:
        """Wait until its version is stable."""
        wait_for("a stable version", lambda: "lastStable" in self.status(), timeout=600, interval=1)

    def end(self) -> None:
        """Take it away."""
        self.flow.hold()
        self.world.delete_apps(self.namespace)
        delete_topics(self.world.environment.kafka_host, [self.topic])

    def patch(self, spec: dict[str, Any]) -> None:
        """Edit its spec."""
        self.world.kubectl.patch("sapp", self.name, self.namespace, {"spec": spec})

    def upgrade_number(self) -> int:
        """Return the number of its last upgrade; an edit is followed by one with a higher number."""
        return int(self.status().get("upgrade", {}).get("number", 0))

    def await_upgrade(self, phase: str, after: int) -> dict[str, Any]:
        """Wait until the upgrade after that number is in this phase; return the status, of that moment.

        Raises:
            CannotComeError: it is over, and the phase is another one.
        """

        def probe() -> dict[str, Any]:
            status = self.status()
            upgrade = status.get("upgrade", {})
            if has_ended(upgrade, after) and upgrade["phase"] != phase:
                raise CannotComeError(f"the upgrade is over, and not {phase}: {json.dumps(upgrade)}")
            assert upgrade.get("number", 0) > after, upgrade
            assert upgrade["phase"] == phase, upgrade
            return status

        return wait_for(f"the upgrade to be {phase}", probe, timeout=900, interval=1)

    def await_executors(self, number: int, after: int = 0) -> dict[str, Any]:
        """Wait until so many are wanted and run, of an epoch after that one; return the status.

        A driver that is about to go has the number as well.
        """

        def probe() -> dict[str, Any]:
            status = self.status()
            seen = status.get("executors", {})
            assert (status.get("epoch", 0) > after, status["phase"]) == (True, "Running"), status
            said = (seen, status.get("autoscaling"), status.get("conditions"))
            assert (seen.get("wanted"), seen.get("running")) == (number, number), said
            return status

        return wait_for(f"{number} executors", probe, timeout=420, interval=1)

    def await_pods_of_executors(self, number: int) -> None:
        """Wait until there are so many, and no other that ends its tasks or was left."""

        def probe() -> bool:
            pods = self.world.kubectl.list("pods", self.namespace, "tidegate.dev/role=executor")
            assert len(pods) == number, [(pod["metadata"]["name"], pod["status"]["phase"]) for pod in pods]
            return True

        wait_for(f"{number} pods of executors", probe, timeout=300, interval=2)

    def await_batches(self, more: int) -> int:
        """Wait until so many more batches are committed; return the newest."""
        begun = int(self.status()["batch"])

        def probe() -> int:
            batch = int(self.status()["batch"])
            assert batch >= begun + more, (begun, batch)
            return batch

        return wait_for(f"{more} more batches", probe, timeout=300, interval=2)

    def await_all_tallied(self) -> None:
        """Send no more, and wait until the newest tally is of all numbers, each once."""
        numbers = self.flow.hold()
        expected = {digit: len(range(digit, numbers, 10)) for digit in range(10)}

        def probe() -> bool:
            newest, found = self._newest()
            assert found == expected, (newest, found)
            return True

        wait_for("the tallies of all numbers", probe, timeout=600, interval=2)
        self.right = True

    @property
    def _output(self) -> str:
        return f"output/{self.namespace}/{self.name}"

    def _newest(self) -> tuple[str, dict[int, int]]:
        pages = self.world.s3.get_paginator("list_objects_v2").paginate(
            Bucket=self.world.bucket, Prefix=f"{self._output}/"
        )
        keys = [item["Key"] for page in pages for item in page.get("Contents", [])]
        newest = max(key.split("/")[-2] for key in keys if key.endswith("/_SUCCESS"))
        parts = [key for key in keys if key.startswith(f"{self._output}/{newest}/part-")]
        rows = [json.loads(line) for key in parts for line in self.world.read(key).splitlines()]
        return newest, {row["digit"]: row["count"] for row in rows}


class Tallies:
    """The application of a file's tests: one for all, and a new one after a test that left it behind in disorder."""

    def __init__(self, world: World, namespace: str, topic: str, spec: dict[str, Any], **fields: Any) -> None:
        """Make none yet; ``fields`` are those of its Tally."""
        self._world, self._namespace, self._topic, self._spec, self._fields = world, namespace, topic, spec, fields
        self._made: Tally | None = None

    def one(self) -> Tally:
        """Return the one that there is if all was right at the end of the last test, or else a new one."""
        if self._made is not None and self._made.right:
            return self._made
        self.end()
        brokers = self._world.environment.kafka_host
        delete_topics(brokers, [self._topic])
        create_topics(brokers, {self._topic: 4})
        self._world.make_namespace(self._namespace)
        self._made = Tally(self._world, self._namespace, self._topic, self._spec, **self._fields)
        self._made.flow = Flow(brokers, self._topic)
        return self._made

    def end(self) -> None:
        """Take it away."""
        if self._made is not None:
            self._made.end()
            self._made = None


@contextmanager
def tallies(world: World, namespace: str, topic: str, spec: dict[str, Any], **fields: Any) -> Iterator[Tallies]:
    """Have a topic with numbers for a file's tests, and take everything away at the end."""
    made = Tallies(world, namespace, topic, spec, **fields)
    try:
        yield made
    finally:
        made.end()
