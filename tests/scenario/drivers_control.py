"""What a driver does about control messages: its log in the object store, and what it tells of the messages in it.

An entry is one object, written once; a process that is new reads the log, and knows nothing of what was asked.
"""

import json
from typing import Any

from tests.scenario.cluster import Container
from tests.scenario.object_store import StoreClient
from tests.scenario.surroundings import Surroundings
from tidegate_spark.contract.control_protocol import (
    ControlOrder,
    ControlOrders,
    ControlReport,
    MessageReport,
    MessageState,
)
from tidegate_spark.contract.protocol import DriverConfig
from tidegate_spark.storage import s3_client

LOG = "control/segments/"


class DriversControl:
    """The control messages of one driver process."""

    def __init__(self, world: Surroundings, container: Container, config: DriverConfig) -> None:
        self._world, self._config = world, config
        self._client: Any = StoreClient(world.store, lambda: container.node.storeless, config.storage.endpoint)
        self._asked: dict[str, ControlOrder] = {}
        self._reported: dict[str, MessageReport] = {}

    def give(self, orders: ControlOrders) -> None:
        """Take messages in, to be appended at the next boundary."""
        for order in orders.messages:
            self._asked.setdefault(order.id, order)
        for name in orders.forget:
            self._reported.pop(name, None)
            self._asked.pop(name, None)
            self._world.count("forgot a message")

    def at_boundary(self) -> None:
        """Append what was asked for, between two batches; what is in the log is in force then."""
        if not self._asked:
            return
        try:
            for order in list(self._asked.values()):
                self._report(order, self._append(order))
                del self._asked[order.id]
        except Exception as error:  # the store does not answer; once more at the next one
            self._world.trace("driver", f"the control log of {self._config.app} is not written: {error}")

    def report(self) -> ControlReport:
        """Return what the agent tells."""
        return ControlReport(last=len(self._reported), messages=tuple(self._reported.values()))

    def _append(self, order: ControlOrder) -> int:
        place = self._config.storage
        while True:
            entries = self._entries()
            known = [number for number, entry in enumerate(entries, 1) if entry["id"] == order.id]
            if known:
                self._world.count("offered again what was in the log")
                return known[0]
            late = 0 < order.expires <= self._world.now()
            entry = {"id": order.id, "app": self._config.uid, "late": late}
            key = place.key(f"{LOG}{len(entries) + 1:012}.json")
            if s3_client.create_object(self._client, place, key, json.dumps(entry).encode()):
                same = [each["id"] for each in entries if each["app"] == self._config.uid]
                self._world.logged(self._config, same, order.id)
                return len(entries) + 1

    def _entries(self) -> list[dict[str, Any]]:
        place = self._config.storage
        listed = self._client.list_objects_v2(Bucket=place.bucket, Prefix=place.key(LOG)).get("Contents", [])
        found = (s3_client.read_object(self._client, place, each["Key"]) for each in listed)
        return [json.loads(each[0]) for each in found if each is not None]

    def _report(self, order: ControlOrder, number: int) -> None:
        late = self._entries()[number - 1]["late"]
        state = MessageState.EXPIRED if late else MessageState.DONE
        self._reported[order.id] = MessageReport(order.id, state, number)
