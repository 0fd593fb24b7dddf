"""What tests/e2e/scripts/listening.py wrote of messages, compared with what is told of them. Reads the object store.

What was in force is told by every task of every batch, also of those that were run again; which messages came into
force with a batch, by the records of another query.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidegate_testing.world import World

SCRIPT = "script:listening.py"
QUERIES = {"tasks", "records"}


@dataclass(frozen=True)
class Reported:
    """What is told of a message: its number in the log, and by query the batch in which it came into force."""

    sequence: int
    batches: Mapping[str, int]


@dataclass(frozen=True)
class Output:
    """What an application with that script wrote."""

    world: World
    folder: str
    """Of what it writes, in the bucket."""

    @property
    def target(self) -> str:
        """The script's argument."""
        return f"s3a://{self.world.bucket}/{self.folder}"

    def written(self, query: str) -> dict[int, list[dict[str, Any]]]:
        """Return what a query wrote, by batch, of every run of each."""
        listing = self.world.s3.get_paginator("list_objects_v2")
        pages = listing.paginate(Bucket=self.world.bucket, Prefix=f"{self.folder}/{query}/")
        keys = [o["Key"] for page in pages for o in page.get("Contents", [])]
        found: dict[int, list[dict[str, Any]]] = {}
        for key in (key for key in keys if "/part-" in key and "_temporary" not in key):
            lines = self.world.read(key).splitlines()
            found.setdefault(int(key.split("/")[-2]), []).extend(json.loads(line) for line in lines)
        return found


def have_begun(world: World, app: str, namespace: str) -> bool:
    """Return whether each query has committed a batch: what is sent before is in force in it, and no record of its."""
    status = world.status(app, namespace)
    begun = {query["name"] for query in status.get("queries", []) if query.get("batchId", -1) >= 0}
    return status.get("phase") == "Running" and begun >= QUERIES


def assert_each_was_in_force_once_in_order_and_in_one_batch(output: Output, reported: Mapping[str, Reported]) -> None:
    """``reported`` has the messages in the order in which they were sent, which is also that of their names.

    Each is a ``reload-config`` of ``{"sent": {name: 1}}``, so that it is there for good.
    """
    numbers = [each.sequence for each in reported.values()]
    assert numbers == sorted(set(numbers))
    for query in QUERIES:
        batches = [each.batches[query] for each in reported.values()]
        assert batches == sorted(batches), query
    assert_every_task_saw_the_same(output.written("tasks"), reported)
    assert_each_is_a_record_of_one_batch(output.written("records"), reported)


def assert_every_task_saw_the_same(
    written: Mapping[int, list[dict[str, Any]]], reported: Mapping[str, Reported]
) -> None:
    """In a batch all tasks of all runs saw the same, and each message was in force from the batch on that is told."""
    # A batch without rows has no tasks that ask: the first one, say, of a source that has only begun.
    seen = {batch: {(line["position"], line["sent"]) for line in lines} for batch, lines in written.items() if lines}
    assert {batch: said for batch, said in seen.items() if len(said) != 1} == {}
    in_force = {batch: json.loads(next(iter(said))[1]) for batch, said in sorted(seen.items())}
    for batch, names in in_force.items():
        due = [name for name, each in reported.items() if each.batches["tasks"] <= batch]
        assert names == due, f"batch {batch}"
    assert list(in_force.values())[-1] == list(reported)


def assert_each_is_a_record_of_one_batch(
    written: Mapping[int, list[dict[str, Any]]], reported: Mapping[str, Reported]
) -> None:
    """Each message is a record of the batch that is told, with its number, and of no other one.

    Messages of other types, which are records as well, are left out.
    """
    came: dict[str, set[int]] = {}
    for batch, lines in written.items():
        for line in lines:
            payload = json.loads(line.get("payload") or "null")
            if not isinstance(payload, dict) or "sent" not in payload:
                continue
            (name,) = payload["sent"]
            came.setdefault(name, set()).add(batch)
            assert line["sequence"] == reported[name].sequence
    assert came == {name: {each.batches["records"]} for name, each in reported.items()}
