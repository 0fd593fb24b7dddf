"""The process that makes a lineage with other partitions of one that has ended. Fence and claim are the runtime's.

A lineage is the batches that are committed in it with their state, and beside it an object that says that it is whole.
State in so many partitions is a number in that object.
"""

import asyncio
import json
import re
from collections.abc import Collection
from typing import Any

from tests.scenario.api_server import Body
from tests.scenario.cluster import Container, Ended
from tests.scenario.drivers_snapshots import QUERY
from tests.scenario.lineages import LineageRepository
from tests.scenario.object_store import FencePort, StoreClient, root_of
from tests.scenario.surroundings import Surroundings, config_of
from tidegate_spark.contract.protocol import DEPENDENCY_REASONS, Fault, Termination, from_json, to_json
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.repartition_protocol import (
    REPARTITION_VARIABLE,
    Repartition,
    RepartitionedQuery,
    RepartitionEnd,
)
from tidegate_spark.repartition.pod_settings import end_of
from tidegate_spark.snapshots.lineages import attempts
from tidegate_spark.storage import s3_client
from tidegate_spark.storage.claim import claiming, fence
from tidegate_spark.storage.claim.fence import Fenced, Held, Holder
from tidegate_spark.storage.s3_client import FaultError
from tidegate_spark.storage.store import SnapshotError

_HOW_MANY_DIE = 0.3


_OF_A_LINEAGE = re.compile(r"(?P<prefix>.+)/(lineages|repartitions)/(?P<number>\d+)(/.+|\.json)", re.ASCII)


def is_of_nobody(key: str, there: Collection[str], run_in: Collection[tuple[str, int]]) -> bool:
    """Return whether an object that is removed says that a lineage is made, or is of one that is, and never was run in.

    Args:
        key: of the object.
        there: keys of those that are left.
        run_in: prefix and lineage of each in which a batch was begun.
    """
    found = _OF_A_LINEAGE.fullmatch(key)
    if found is None:
        return False
    begun = f"{found['prefix']}/repartitions/{found['number']}.json"
    return begun == key or (begun in there and (found["prefix"], int(found["number"])) not in run_in)


class FencedError(Exception):
    """Another process has the storage."""


class RepartitionProcess:
    """One attempt from start to end."""

    ready = True

    def __init__(self, world: Surroundings, container: Container, pod: Body) -> None:
        self._world, self._config = world, config_of(pod)
        env = {item["name"]: item.get("value", "") for item in pod["spec"]["containers"][0]["env"]}
        self.order = from_json(Repartition, env[REPARTITION_VARIABLE].replace("$$", "$"))
        self._client: Any = StoreClient(world.store, lambda: container.node.storeless, self._config.storage.endpoint)
        place = self._config.storage
        self.prefix = f"{root_of(place.endpoint)}{place.bucket}/{place.prefix}"
        self._port = FencePort(self._client, place)
        process = f"{container.uid}/{container.restarts}"
        self._holder = Holder(self._config.uid, self._config.epoch, self._config.lineage, container.uid, process)
        self._task: asyncio.Task[None] | None = None

    @property
    def alive(self) -> bool:
        """Whether it may still write."""
        return self._task is not None and not self._task.done()

    def start(self, ended: Ended) -> None:
        """Begin; it may die at any step."""
        self._task = asyncio.create_task(self._live(ended))
        if self._world.rng.random() < _HOW_MANY_DIE:
            asyncio.get_running_loop().call_later(self._world.rng.uniform(0.0, 40.0), self._die, ended)

    def terminate(self) -> None:
        """It has no use for a grace period."""

    def kill(self) -> None:
        """End at once, without a word; what it has written stays."""
        assert self._task is not None
        self._task.cancel()

    def _die(self, ended: Ended) -> None:
        if self.alive:
            self.kill()
            self._world.count("repartition killed")
            ended(137, "Error", "")

    async def _live(self, ended: Ended) -> None:
        config = self._config
        try:
            reported = await self._make()
        except (FencedError, claiming.BehindError) as error:
            reported = end_of(config, Reason.FENCED, str(error))
        except SnapshotError as error:
            reported = end_of(config, Reason.STATE_UNREADABLE, str(error))
        except Exception as error:
            fault = error.fault if isinstance(error, FaultError) else s3_client.fault_of(error, config.storage, "")
            if fault is None:
                raise
            what = Reason.DEPENDENCY_UNAVAILABLE if fault.reason in DEPENDENCY_REASONS else Reason.STATE_UNREADABLE
            reported = end_of(config, what, fault.message, fault.reason)
        assert reported.repartition is not None
        self._world.count(f"repartition {reported.repartition.what.value or 'done'}")
        code = 0 if reported.reason is Reason.COMPLETED else 1
        ended(code, "Completed" if code == 0 else "Error", to_json(reported))

    async def _make(self) -> Termination:
        config, order = self._config, self.order
        await self._pause(0.5, 3.0)
        claiming.claim(self._client, config)
        taken = fence.take(self._port, self._holder)
        if isinstance(taken, Fenced):
            raise FencedError(f"epoch {taken.epoch} has the storage")
        self._world.ledger.taken(self.prefix, self._holder, config.restart)
        self._world.entered(self.prefix, self._holder)
        own = self._own()
        attempts.clear_earlier(own, order)
        attempts.clear(own, order.lineage)
        batch = self._pin()
        if self._newest("offsets") > batch:
            return end_of(config, Reason.BATCH_UNCOMMITTED, "The last batch was not committed.")
        attempts.begin(own, order)
        await self._pause(0.2, 5.0)
        self._put(f"lineages/{order.lineage}/{QUERY}/commits/{batch}", {})
        await self._pause(0.5, 30.0)
        if self._world.rng.random() < 0.1:
            return end_of(config, Reason.SPARK_FAILED, "Spark does not like it.")
        self._check(taken)
        self._put(f"lineages/{order.lineage}/{QUERY}/state/{batch + 1}", {})
        self._put(f"lineages/{order.lineage}/{QUERY}/commits/{batch + 1}", {})
        new = Holder(config.uid, config.epoch, order.lineage, self._holder.pod_uid, self._holder.process)
        self._world.ledger.filled(self.prefix, new, order.of_lineage, batch)
        self._world.ledger.repartitioned(self.prefix, new, order.of_lineage, batch + 1, order.partitions)
        mark = {"snapshot": order.pin, "partitions": order.partitions, "batches": {QUERY: batch + 1}}
        self._put(f"lineages/{order.lineage}.json", mark)
        end = RepartitionEnd(lineage=order.lineage, rows=1, queries={QUERY: RepartitionedQuery(batch, 1, 4)})
        await self._pause(0.0, 2.0)
        return Termination(Reason.COMPLETED, "whole", config.epoch, repartition=end)

    def _pin(self) -> int:
        """Note the batch that the old lineage ended with, and keep it; the same at each attempt."""
        note = f"upgrades/{self.order.pin}.json"
        known = self._read(note)
        if known is None:
            known = {"batch": self._newest("commits")}
            self._put(note, known)
        if int(known["batch"]) < 0:
            raise FaultError(Fault(Reason.STATE_MISSING, "nothing was committed"))
        self._own().publish(self.order.pin, int(known["batch"]))
        return int(known["batch"])

    def _newest(self, log: str) -> int:
        """Return the newest batch in a log of the query that is divided."""
        return int(self._own().newest_batch(self.order.of_lineage, QUERY, log))

    def _own(self) -> Any:
        return LineageRepository(self._client, self._config.storage)

    def _check(self, held: Held) -> None:
        lost = fence.check(self._port, held)
        if lost is not None:
            raise FencedError(f"epoch {lost.epoch} took the storage over")

    async def _pause(self, low: float, high: float) -> None:
        await asyncio.sleep(self._world.rng.uniform(low, high))

    def _read(self, key: str) -> Any:
        place = self._config.storage
        found = s3_client.read_object(self._client, place, place.key(key))
        return json.loads(found[0]) if found is not None else None

    def _put(self, key: str, body: dict[str, Any]) -> None:
        place = self._config.storage
        self._client.put_object(Bucket=place.bucket, Key=place.key(key), Body=json.dumps(body).encode())
