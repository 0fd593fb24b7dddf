"""Each fault is aimed at the right thing, and at nothing that is already going away."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.chaos import injection
from tests.chaos.faults import Fault, Kind
from tests.chaos.injection import LEASE, Injector, Shot
from tidegate_testing.live_cluster import OPERATOR_NAMESPACE, LiveCluster


def pod(name: str, *, phase: str = "Running", leaving: bool = False, ready: bool = True) -> dict[str, Any]:
    metadata = {"name": name, "uid": f"uid-of-{name}", **({"deletionTimestamp": "now"} if leaving else {})}
    condition = {"type": "Ready", "status": str(ready)}
    return {"metadata": metadata, "status": {"phase": phase, "conditions": [condition]}}


@dataclass
class World:
    """As much of a cluster as aiming looks at."""

    driver: dict[str, Any] | None = None
    executors: list[dict[str, Any]] = field(default_factory=list)
    operators: list[dict[str, Any]] = field(default_factory=list)
    leader: str | None = None
    namespace: str = "chaos"
    calls: list[tuple[Any, ...]] = field(default_factory=list)

    @property
    def api(self) -> Any:
        return SimpleNamespace(ready=lambda: True, call=lambda *call: self.calls.append(call))

    def pod(self, name: str) -> dict[str, Any] | None:
        assert name == "accounts-driver"
        return self.driver

    def pods(self, namespace: str, selector: str) -> list[dict[str, Any]]:
        assert selector
        return self.operators if namespace == OPERATOR_NAMESPACE else self.executors

    def get(self, path: str) -> dict[str, Any] | None:
        assert path == LEASE
        return None if self.leader is None else {"spec": {"holderIdentity": self.leader}}


@pytest.fixture(autouse=True)
def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every container has the process that is looked for; nobody is waited for."""
    found = SimpleNamespace(program="it", kill=lambda: None)
    monkeypatch.setattr(injection, "find", lambda cluster, pod, container, choice: found)
    monkeypatch.setattr(injection, "AIM_SECONDS", -1.0)
    monkeypatch.setattr(World, "cluster", None, raising=False)


def aim(world: World, kind: Kind, *, moment: float = 0.0, orderly: bool = False) -> Shot:
    return Injector(cast(LiveCluster, world), "accounts").aim(Fault(1, kind, False, moment, orderly))


def test_the_operator_that_holds_the_lease_is_hit() -> None:
    world = World(operators=[pod("tidegate-a"), pod("tidegate-b")], leader="tidegate-b_1234")
    assert "tidegate-b" in aim(world, Kind.OPERATOR).target


def test_an_operator_without_a_lease_is_hit_as_it_is() -> None:
    assert "tidegate-a" in aim(World(operators=[pod("tidegate-a")]), Kind.OPERATOR).target


def test_a_lease_of_an_operator_that_is_gone_is_waited_out() -> None:
    with pytest.raises(AssertionError, match="no operator pod is 'tidegate-old_1'"):
        aim(World(operators=[pod("tidegate-a")], leader="tidegate-old_1"), Kind.OPERATOR)


@pytest.mark.parametrize(("moment", "name"), [(0.0, "e-1"), (0.49, "e-1"), (0.5, "e-3"), (0.99, "e-3")])
def test_one_of_the_executors_that_run_is_hit_as_the_dice_say(moment: float, name: str) -> None:
    world = World(executors=[pod("e-3"), pod("e-2", leaving=True), pod("e-1"), pod("e-4", phase="Pending")])
    assert name in aim(world, Kind.EXECUTOR_PROCESS, moment=moment).target


def test_a_driver_that_goes_away_already_is_not_hit() -> None:
    for world in (World(), World(driver=pod("accounts-driver", leaving=True))):
        with pytest.raises(AssertionError, match="driver"):
            aim(world, Kind.DRIVER_JVM)


@pytest.mark.parametrize(("orderly", "grace"), [(True, None), (False, 1)])
def test_a_pod_is_deleted_by_its_uid_with_its_own_grace_or_nearly_none(orderly: bool, grace: int | None) -> None:
    world = World(driver=pod("accounts-driver"))
    shot = aim(world, Kind.DRIVER_POD, orderly=orderly)
    shot.fire()
    ((method, path, options),) = world.calls
    assert (method, path) == ("DELETE", "/api/v1/namespaces/chaos/pods/accounts-driver")
    assert options["preconditions"] == {"uid": "uid-of-accounts-driver"}
    assert options.get("gracePeriodSeconds") == grace


def test_a_deleted_pod_is_past_when_it_is_gone_or_another_one_has_its_name() -> None:
    world = World(driver=pod("accounts-driver"))
    shot = aim(world, Kind.DRIVER_POD)
    assert not shot.past()
    world.driver = None
    assert shot.past()
    world.driver = {"metadata": {"name": "accounts-driver", "uid": "another"}}
    assert shot.past()


def test_an_operator_is_past_when_one_is_ready() -> None:
    world = World(operators=[pod("tidegate-a", ready=False), pod("tidegate-b", ready=False)])
    shot = aim(world, Kind.OPERATOR)
    assert not shot.past()
    world.operators[0] = pod("tidegate-a")
    assert shot.past()
