"""What was made after a snapshot, and which snapshots a complete one may send away.

Pure, but for lists: a real HTTP server tells the watch of them, on 127.0.0.1 in this process.
"""

import asyncio
import datetime
from typing import Any

import msgspec
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from tidegate.api.status.status import Condition
from tidegate.api.stream_snapshot import (
    SnapshotApp,
    SnapshotPhase,
    StreamSnapshot,
    is_damaged,
    is_scheduled,
    is_to_be_verified,
    owner_uid,
)
from tidegate.cache.index import Index
from tidegate.engine.resource_key import Key
from tidegate.engine.workqueue import WorkQueue
from tidegate.snapshots.controller import SnapshotController
from tidegate.snapshots.history import Later
from tidegate.snapshots.index import LATELY, SnapshotIndex
from tidegate.wiring.metrics import OperatorMetrics
from tidegate_testing.observations import NOW
from tidegate_testing.scripted_server import Server, listing, talking_to
from tidegate_testing.snapshot_observations import TIME, later_than, ready_snapshot

READY, FAILED = SnapshotPhase.READY, SnapshotPhase.FAILED
DAMAGED = Condition(type="Verified", status="False", reason="SnapshotDamaged", last_transition_time=TIME)


def made(
    number: int, keep: str | None = "{}", *, uid: str = "u-1", damaged: bool = False, verify: int = 0, **status: Any
) -> StreamSnapshot:
    """Return one that was made in this minute, by the schedule unless it has no ``keep``."""
    found = ready_snapshot()
    metadata = msgspec.structs.replace(
        found.metadata,
        name=f"orders-{number}",
        uid=f"uid-{number}",
        creation_timestamp=datetime.datetime.fromtimestamp(NOW + 60 * number, datetime.UTC),
        labels={"tidegate.dev/scheduled": "true"} if keep is not None else {},
        annotations={"tidegate.dev/retention": keep or "{}"},
    )
    conditions = (DAMAGED,) if damaged else found.status.conditions
    known = {"app": SnapshotApp(uid=uid) if uid else None, "conditions": conditions, **status}
    spec = msgspec.structs.replace(found.spec, verify_nonce=verify)
    noted = msgspec.structs.replace(found.status, **known)
    return msgspec.structs.replace(found, metadata=metadata, spec=spec, status=noted)


snapshots = st.lists(
    st.builds(
        made,
        st.integers(0, 20),
        st.sampled_from([None, "{}"]),
        uid=st.sampled_from(["u-1", "u-2", ""]),
        damaged=st.booleans(),
        verify=st.sampled_from([0, 1]),
        phase=st.sampled_from([READY, FAILED, SnapshotPhase.COPYING]),
    ),
    max_size=8,
    unique_by=lambda it: it.metadata.name,
)


@given(snapshots, st.data())
def test_it_is_what_looking_at_each_of_them_would_find(known: list[StreamSnapshot], data: st.DataObject) -> None:
    of = made(10, uid=data.draw(st.sampled_from(["u-1", ""])))
    later = [s for s in known if s.is_final and owner_uid(s) == owner_uid(of) != "" and _order(s) > _order(of)]
    whole = [s for s in later if s.status.phase is READY and not is_damaged(s)]
    scheduled = [s for s in later if is_scheduled(s)]
    known_whole = [s for s in whole if not is_to_be_verified(s)]
    counts = (len(whole), sum(map(is_scheduled, whole)), len(scheduled), len(known_whole))
    assert later_than(of, known) == Later(*counts)


def _order(snapshot: StreamSnapshot) -> tuple[datetime.datetime | None, str]:
    return snapshot.metadata.creation_timestamp, snapshot.metadata.name


@given(snapshots)
def test_the_index_counts_what_is_there_and_nothing_that_was(known: list[StreamSnapshot]) -> None:
    index, of = SnapshotIndex(), made(-1)
    for version, state in enumerate((SnapshotPhase.COPYING, FAILED, None)):
        for snapshot in known:
            metadata = msgspec.structs.replace(snapshot.metadata, resource_version=str(version + 1))
            phase = state or snapshot.status.phase
            status = msgspec.structs.replace(snapshot.status, phase=phase)
            assert index.put(msgspec.structs.replace(snapshot, metadata=metadata, status=status))
    assert index.history.later(of) == later_than(of, known)
    for snapshot in known:
        index.remove(snapshot.key, snapshot.metadata.uid)
    assert index.history.later(of) == Later()


def names_beside(index: SnapshotIndex, number: int) -> set[str]:
    return {name for _, name in index.beside(made(number))}


@pytest.mark.parametrize("keep", ['{"maxAgeSeconds":9000000}', "{}"])
def test_of_thousands_that_stay_one_that_is_complete_has_few_judged_again(keep: str) -> None:
    index = SnapshotIndex()
    for number in range(3 * LATELY):
        index.put(made(number, keep))
    beside = names_beside(index, 3 * LATELY - 1)
    assert len(beside) <= LATELY
    assert f"orders-{3 * LATELY - 2}" in beside  # the newest before, which stayed whatever its age


def test_those_are_judged_again_that_are_one_too_many_or_useless() -> None:
    index = SnapshotIndex()
    last = 2 * LATELY
    for number in range(last + 1):
        index.put(made(number, '{"maxCount":150}', phase=FAILED if number == 3 else READY, ready_time=None))
    beside = names_beside(index, last)
    assert {"orders-0", "orders-3", "orders-50"} <= beside
    assert "orders-51" not in beside


NUMBER = 3 * LATELY


def listed(version: int, *, apps: int = 2) -> web.Response:
    """Return a list of complete snapshots of some applications, each changed in this version."""
    found = []
    for number in range(NUMBER):
        snapshot = made(number, '{"maxCount":1}')
        metadata = msgspec.structs.replace(snapshot.metadata, resource_version=str(version))
        assert snapshot.spec.app_ref is not None
        of = msgspec.structs.replace(snapshot.spec.app_ref, name=f"orders-{number % apps}")
        spec = msgspec.structs.replace(snapshot.spec, app_ref=of)
        found.append(msgspec.structs.replace(snapshot, metadata=metadata, spec=spec))
    return listing(version, *(msgspec.to_builtins(snapshot) for snapshot in found))


async def test_a_list_has_those_of_each_application_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.kube.watch._FIRST_PAUSE", 0.0)
    looked_through, woken, beside = list[Key](), set[Key](), SnapshotIndex.beside

    def counted(index: SnapshotIndex, snapshot: StreamSnapshot) -> list[Key]:
        looked_through.append(snapshot.app_key)
        return beside(index, snapshot)

    monkeypatch.setattr(SnapshotIndex, "beside", counted)
    monkeypatch.setattr(WorkQueue, "wake", lambda _, key: woken.add(key))
    index, metrics = Index(), OperatorMetrics()
    unused: Any = None
    server = Server(listed(5), web.Response(status=410), listed(6))
    async with talking_to(server) as client:
        queue = WorkQueue(lambda key: asyncio.sleep(0.0), metrics)
        part = SnapshotController(client, metrics, index, queue, unused, lambda key: None)
        following = asyncio.ensure_future(part.watch(""))
        async with asyncio.timeout(30):
            while len(server.asked) < 4:  # noqa: ASYNC110 - the server tells nobody of it
                await asyncio.sleep(0)
        following.cancel()
    assert len(woken) == NUMBER
    assert sorted(looked_through) == [("shop", "orders-0")] * 2 + [("shop", "orders-1")] * 2
