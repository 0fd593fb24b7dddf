"""How the Lease is read and written, in virtual time. The API server is one object; no I/O."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest

from tidegate.kube.client import KubeClient
from tidegate.kube.failures import AlreadyExists, Conflict, Failure, Forbidden, NotFound, Unavailable
from tidegate.kube.leadership import Candidate, Timing
from tidegate.kube.lease import Leadership

PLACE = ("system", "gate")
COLLECTION = "/apis/coordination.k8s.io/v1/namespaces/system/leases"


class ApiServer:
    """Keeps one Lease as the real one does; ``refusal`` is the answer to everything while it is set."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.refusal: Failure | None = None
        self.asked: list[str] = []

    async def send_beside(
        self, method: str, path: str, kind: type[Any], manifest: Any = None, *, patience: float
    ) -> Any:
        assert patience > 0
        self.asked.append(method)
        answer = self.refusal or self.answer(method, path, msgspec.to_builtins(manifest))
        return msgspec.convert(answer, kind) if isinstance(answer, dict) else answer

    def answer(self, method: str, path: str, manifest: Any) -> dict[str, Any] | Failure:
        assert path == (COLLECTION if method == "POST" else f"{COLLECTION}/gate")
        if method == "POST":
            assert manifest["metadata"] == {"name": "gate"}
            return AlreadyExists("there is one") if self.lease is not None else self.store(manifest["spec"])
        if self.lease is None:
            return NotFound("there is none")
        if method == "GET":
            return self.lease
        if manifest["metadata"] != {"resourceVersion": self.lease["metadata"]["resourceVersion"]}:
            return Conflict("it has changed")
        return self.store({**self.lease["spec"], **manifest["spec"]})

    def store(self, spec: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        self.lease = {"metadata": {"resourceVersion": str(self.version)}, "spec": spec}
        return self.lease

    @property
    def holder(self) -> str:
        assert self.lease is not None
        return str(self.lease["spec"]["holderIdentity"])


class Time:
    """Passes when somebody sleeps, and ends at a given moment."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.end = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        if self.now + seconds > self.end:
            self.now = self.end
            raise TimeoutError
        self.now += seconds


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(asyncio, "sleep", made.sleep)
    return made


def stand(
    server: ApiServer, time: Time, name: str, reported: Callable[[bool], None] = lambda leads: None
) -> Leadership:
    return Leadership(cast(KubeClient, server), Candidate(name, Timing()), PLACE, reported, time)


async def let_pass(time: Time, leadership: Leadership, seconds: float) -> None:
    time.end = time.now + seconds
    with pytest.raises(TimeoutError):
        await leadership.run()


async def test_a_lease_that_is_not_there_is_made_and_held_when_its_duration_has_passed(time: Time) -> None:
    server = ApiServer()
    reported: list[bool] = []
    leadership = stand(server, time, "a", reported.append)
    await let_pass(time, leadership, 9.0)
    assert (server.holder, leadership.holds(), reported) == ("a", False, [])
    await let_pass(time, leadership, 9.0)
    assert (leadership.holds(), reported) == (True, [True])


async def test_a_resignation_frees_the_lease_and_the_next_one_holds_at_once(time: Time) -> None:
    server = ApiServer()
    reported: list[bool] = []
    first, second = stand(server, time, "a", reported.append), stand(server, time, "b")
    await let_pass(time, first, 20.0)
    await let_pass(time, second, 1.0)
    assert not second.holds()
    await first.resign()
    assert (server.holder, first.holds(), reported) == ("", False, [True, False])
    await let_pass(time, second, 2.1)
    assert (server.holder, second.holds()) == ("b", True)
    assert server.lease is not None
    assert server.lease["spec"]["leaseTransitions"] == 1


async def test_a_lease_that_is_taken_ends_the_tenure(time: Time) -> None:
    server = ApiServer()
    leadership = stand(server, time, "a")
    await let_pass(time, leadership, 20.0)
    server.store({"holderIdentity": "b", "leaseDurationSeconds": 10})
    time.end = time.now + 3.0
    assert await leadership.run() == "the Lease names b"
    assert not leadership.holds()


@pytest.mark.parametrize("holder", ["a", "b", "another, long ago"])
async def test_a_lease_from_the_past_ends_leader_and_standby_because_all_else_they_know_is_as_wrong(
    time: Time, holder: str
) -> None:
    server = ApiServer()
    leader, standby = stand(server, time, "a"), stand(server, time, "b")
    await let_pass(time, leader, 20.0)
    await let_pass(time, standby, 1.0)
    server.version -= 4
    server.store({"holderIdentity": holder, "leaseDurationSeconds": 10})
    for each in (leader, standby):
        time.end = time.now + 3.0
        assert "restored from a backup" in await each.run()
        assert not each.holds()


@pytest.mark.parametrize("refusal", [Unavailable("gone"), Forbidden("no longer yours")])
async def test_a_leader_that_can_not_renew_ends_by_its_own_clock(time: Time, refusal: Failure) -> None:
    server = ApiServer()
    leadership = stand(server, time, "a")
    await let_pass(time, leadership, 20.0)
    server.refusal, time.end = refusal, time.now + 8.0
    assert await leadership.run() == "not renewed for 7 s"


async def test_what_keeps_a_lease_from_being_used_is_told_until_it_can_be(time: Time) -> None:
    server = ApiServer()
    server.refusal = Forbidden("leases is forbidden")
    leadership = stand(server, time, "a")
    await let_pass(time, leadership, 4.0)
    assert "leases is forbidden" in leadership.missing
    server.refusal = None
    await let_pass(time, leadership, 4.0)
    assert leadership.missing == ""


async def test_a_namespace_that_is_not_there_is_told_and_not_asked_without_end(time: Time) -> None:
    server = ApiServer()
    server.refusal = NotFound("namespaces system not found")
    leadership = stand(server, time, "a")
    await let_pass(time, leadership, 10.0)
    assert ("namespaces system not found" in leadership.missing, len(server.asked) < 20) == (True, True)


async def test_a_stopped_process_finds_out_before_it_does_anything(time: Time) -> None:
    server = ApiServer()
    leadership = stand(server, time, "a")
    await let_pass(time, leadership, 20.0)
    asked = len(server.asked)
    time.now += 30.0
    assert not leadership.holds()
    time.end = time.now
    assert await asyncio.wait_for(leadership.run(), 20) == "not renewed for 7 s"
    assert len(server.asked) == asked
