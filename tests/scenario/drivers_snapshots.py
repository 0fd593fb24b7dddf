"""What a driver does about snapshots: pins of upgrades, rollbacks that start from them, and orders of the operator.

A snapshot is one object that says after which batch of which lineage the query is in it.
"""

import dataclasses
import json
from collections.abc import Callable
from typing import Any

from tests.scenario.cluster import Container
from tests.scenario.lineages import LineageRepository
from tests.scenario.object_store import StoreClient, root_of
from tests.scenario.surroundings import Surroundings
from tidegate_spark.contract.protocol import APP_FILE, OPENS_EMPTY, DriverConfig, Fault, StartFrom
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.rehearsal_protocol import rehearsal_place
from tidegate_spark.contract.snapshot_protocol import QueryPin, SnapshotOrders, SnapshotReport, SnapshotState
from tidegate_spark.driver.starting_point import left_to_fill, start_empty
from tidegate_spark.process.outcome import Outcome
from tidegate_spark.repartition.cleanup import clear_left
from tidegate_spark.snapshots.lineages import attempts
from tidegate_spark.storage import s3_client
from tidegate_spark.storage.claim.claimed import Known
from tidegate_spark.storage.claim.claiming import BehindError
from tidegate_spark.storage.claim.fence import Holder
from tidegate_spark.storage.s3_client import FaultError
from tidegate_spark.storage.store import SnapshotError

QUERY = "main"
UNREAD = "never-read"
"""A topic that no query reads."""


class DriversSnapshots:
    """The snapshots of one driver process."""

    def __init__(self, world: Surroundings, container: Container, config: DriverConfig, holder: Holder) -> None:
        self._world, self._config, self._holder = world, config, holder
        self._client: Any = StoreClient(world.store, lambda: container.node.storeless, config.storage.endpoint)
        self._prefix = f"{root_of(config.storage.endpoint)}{config.storage.bucket}/{config.storage.prefix}"
        self._storeless = lambda: container.node.storeless
        self._under_way: dict[str, tuple[float, int]] = {}
        """Snapshot -> when its copy is whole, and the batch that it is to be of; -1 for the newest."""
        self._reports: dict[str, SnapshotReport] = {}
        self._own: Any = LineageRepository(self._client, config.storage)
        self._cleared = False

    def begin(self) -> Outcome | None:
        """Fill the lineage and note the batch of the pin, as a driver does before its first query; how it ends if not.

        Raises:
            FaultError: the lineage cannot be filled.
        """
        config = self._config
        if config.start_from is not None:
            attempts.clear(self._own, config.lineage)
            self._fill(config.start_from)
        else:
            if config.opening == OPENS_EMPTY and start_empty(self._own, config.lineage):
                self._world.ledger.cleared(self._prefix, config.lineage)
            left = self._left_to_fill()
            if left is not None:
                self._world.count("filled a lineage of which the status knew nothing")
                self._fill(dataclasses.replace(left, offsets="") if UNREAD in left.offsets else left)
            elif config.lineage > 1 and self.last_batch(config.lineage) < 0 and not self._starts_from_nothing():
                self._world.ledger.not_whole(self._prefix, self._holder)
        if config.pin is None:
            return None
        batch = self._noted(config.pin.snapshot, config.lineage)
        if batch < 0:
            return Outcome(Reason.STATE_MISSING, f"lineage {config.lineage} holds no committed batch")
        self._take(config.pin.snapshot, batch)
        return None

    def _left_to_fill(self) -> StartFrom | None:
        try:
            return left_to_fill(self._own, self._config.lineage)
        except SnapshotError:
            self._world.ledger.not_whole(self._prefix, self._holder)
            raise

    def _starts_from_nothing(self) -> bool:
        opening = (self._read(APP_FILE) or {}).get("opening") or {}
        return (opening.get("lineage"), opening.get("what")) == (self._config.lineage, OPENS_EMPTY)

    def clear_left(self, is_held: Callable[[], bool]) -> None:
        """Remove the lineages that were made and not run in, once; tried again later if the store does not answer."""
        if self._cleared:
            return
        try:
            there = attempts.begun(self._own)
            clear_left(self._own, self._config.lineage, is_held)
        except Exception:
            return
        self._cleared = True
        if there:
            self._world.count("removed lineages that were made and not run in")

    def give(self, orders: SnapshotOrders) -> None:
        """Take orders in."""
        for order in orders.take:
            if order.id not in self._reports:
                self._take(order.id, -1)
        for name in orders.dispose:
            self._under_way.pop(name, None)
            self._world.disposing(self._config, name)
            try:
                self._remove(name)
            except Exception:
                continue  # the store does not answer; nothing is reported, so it is ordered again
            self._reports[name] = SnapshotReport(name, SnapshotState.DISPOSED)
            self._world.count("disposed of a pin or its copy")

    def _remove(self, name: str) -> None:
        self._own.retire(name)
        self._client.delete_object(Bucket=self._config.storage.bucket, Key=self._config.storage.key(_note(name)))
        self._remove_rehearsal(name)

    def _remove_rehearsal(self, name: str) -> None:
        place = rehearsal_place(self._config.storage, name)
        listed = self._client.list_objects_v2(Bucket=place.bucket, Prefix=place.prefix + "/").get("Contents", [])
        for each in listed:
            self._client.delete_object(Bucket=place.bucket, Key=each["Key"])
            self._world.count("removed what a rehearsal had left")

    def reports(self) -> tuple[SnapshotReport, ...]:
        """Return how far each is; what has had its time is whole by now."""
        for name, (done, batch) in list(self._under_way.items()):
            if self._world.now() >= done:
                self._finish(name, batch)
        return tuple(self._reports.values())

    def last_batch(self, lineage: int, log: str = "commits") -> int:
        """Return the newest batch in a log of a lineage, -1 if there is none."""
        return LineageRepository(self._client, self._config.storage).newest_batch(lineage, QUERY, log)

    def partitions(self, lineage: int) -> int:
        """Return in how many partitions the state of a lineage is, 0 if it was not repartitioned."""
        return int((self._read(f"lineages/{lineage}.json") or {}).get("partitions", 0))

    # --- steps ---

    def _take(self, name: str, batch: int) -> None:
        self._under_way[name] = (self._world.now() + self._world.rng.uniform(0.5, 40.0), batch)
        self._reports[name] = SnapshotReport(name, SnapshotState.COPYING)

    def _finish(self, name: str, batch: int) -> None:
        del self._under_way[name]
        try:
            known = self._read(_manifest(name))
            if known is None:
                known = {"batch": batch if batch >= 0 else self.last_batch(self._config.lineage)}
                self._own.publish(name, int(known["batch"]))
        except Exception:
            self._take(name, batch)  # the store does not answer; another attempt
            return
        self._reports[name] = SnapshotReport(
            name, SnapshotState.READY, queries={QUERY: QueryPin(int(known["batch"]), "")}
        )

    def _fill(self, start: StartFrom) -> None:
        config, mark, left = self._config, f"lineages/{self._config.lineage}.json", start.lineage
        made = self._read(mark)
        if made is not None:
            if made["snapshot"] not in {start.snapshot, *(earlier.snapshot for earlier in start.otherwise)}:
                raise BehindError(mark, config, Known(config.epoch, config.lineage, otherwise=True))
            return
        for earlier in start.otherwise:
            if self._read(f"lineages/{start.lineage}.json") is not None:
                break
            start = dataclasses.replace(start, snapshot=earlier.snapshot, lineage=earlier.lineage)
            self._world.count("rolled back to what a lineage was to start from that nobody filled")
        made = self._read(_manifest(start.snapshot)) if start.lineage else self._read_origin(start)
        if made is None:
            batch = self._noted(start.snapshot, start.lineage) if start.lineage else -1
            if batch < 0:
                raise FaultError(Fault(Reason.SNAPSHOT_UNUSABLE, f"there is nothing of {start.snapshot}"))
            made = {"batch": batch}
            self._own.publish(start.snapshot, batch)
        if UNREAD in start.offsets:
            raise FaultError(Fault(Reason.SNAPSHOT_UNUSABLE, f"no query has read {UNREAD}"))
        self._put(f"lineages/{config.lineage}/{QUERY}/commits/{made['batch']}", made)
        self._world.ledger.filled(self._prefix, self._holder, start.lineage, int(made["batch"]))
        if start.lineage and start.offsets:
            self._world.ledger.started_elsewhere(config.uid, self._holder, left, start.offsets)
        number = self.partitions(start.lineage) if start.lineage else 0
        self._put(mark, {"snapshot": start.snapshot, **({"partitions": number} if number else {})})
        self._world.count("rolled back into a new lineage" if start.lineage else "started from a snapshot")

    def _noted(self, name: str, lineage: int) -> int:
        known = self._read(_note(name))
        if known is None:
            batch = self.last_batch(lineage)
            if batch < 0:
                return -1
            body = json.dumps({"batch": batch}).encode()
            s3_client.create_object(self._client, self._config.storage, self._config.storage.key(_note(name)), body)
            self._world.ledger.noted(self._prefix, self._holder, lineage, batch)
            known = self._read(_note(name)) or {"batch": -1}
        return int(known["batch"])

    def _read(self, key: str) -> Any:
        place = self._config.storage
        found = s3_client.read_object(self._client, place, place.key(key))
        return json.loads(found[0]) if found is not None else None

    def _read_origin(self, start: StartFrom) -> Any:
        client: Any = StoreClient(self._world.store, self._storeless, start.storage.endpoint)
        found = s3_client.read_object(client, start.storage, start.storage.key(_manifest(start.snapshot)))
        return json.loads(found[0]) if found is not None else None

    def _put(self, key: str, body: dict[str, Any]) -> None:
        place = self._config.storage
        self._client.put_object(Bucket=place.bucket, Key=place.key(key), Body=json.dumps(body).encode())


def _manifest(name: str) -> str:
    return f"snapshots/{name}/manifest.json"


def _note(name: str) -> str:
    return f"upgrades/{name}.json"
