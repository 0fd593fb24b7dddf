"""Each fault is aimed at the right thing, and at nothing that is already going away."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from devcluster.apiclient import ApiRefusedError
from tests.chaos import injection
from tests.chaos.faults import Fault, Kind
from tests.chaos.injection import LEASE, NO_PODS, Injector
from tests.chaos.losses import Losses
from tests.chaos.shots import Shot, TargetGoneError
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
    repartitions: list[dict[str, Any]] = field(default_factory=list)
    leader: str | None = None
    refusal: Exception | None = None
    namespace: str = "chaos"
    calls: list[tuple[Any, ...]] = field(default_factory=list)

    @property
    def api(self) -> Any:
        def create(path: str, content: Any) -> None:
            self.call("POST", path, content)

        return SimpleNamespace(ready=lambda: True, call=self.call, create=create)

    def call(self, *call: Any) -> None:
        self.calls.append(call)
        if self.refusal is not None:
            raise self.refusal

    def pod(self, name: str) -> dict[str, Any] | None:
        assert name == "accounts-driver"
        return self.driver

    def pods(self, namespace: str, selector: str) -> list[dict[str, Any]]:
        assert selector
        if namespace == OPERATOR_NAMESPACE:
            return self.operators
        return self.repartitions if "role=repartition" in selector else self.executors

    def get(self, path: str) -> dict[str, Any] | None:
        assert path == LEASE
        return None if self.leader is None else {"spec": {"holderIdentity": self.leader}}


@dataclass
class Taken:
    """What is asked for of the losses."""

    calls: list[tuple[Any, ...]]

    def status(self, earlier: float | None = None) -> Shot:
        return Shot("status", lambda: self.calls.append(("status", earlier)))

    def labels(self, pod: dict[str, Any], put_back: bool) -> Shot:
        return Shot("labels", lambda: self.calls.append(("labels", pod["metadata"]["name"], put_back)))

    def catalog(self, earlier: float | None = None) -> Shot:
        return Shot("catalog", lambda: self.calls.append(("catalog", earlier)))

    def resource(self, by_force: bool) -> Shot:
        return Shot("resource", lambda: self.calls.append(("resource", by_force)))


@pytest.fixture
def process() -> SimpleNamespace:
    """The process that every container has."""
    return SimpleNamespace(program="it", kill=lambda: None, identity=SimpleNamespace(alive=lambda: True))


@pytest.fixture
def containers() -> list[str]:
    """The containers in which it was looked for."""
    return []


@pytest.fixture(autouse=True)
def no_processes(monkeypatch: pytest.MonkeyPatch, process: SimpleNamespace, containers: list[str]) -> None:
    """Every container has the process that is looked for; nobody is waited for."""

    def find(_cluster: object, _pod: object, container: str, _choice: object) -> SimpleNamespace:
        containers.append(container)
        return process

    monkeypatch.setattr(injection, "find", find)
    monkeypatch.setattr(injection, "AIM_SECONDS", -1.0)
    monkeypatch.setattr(World, "cluster", None, raising=False)


def aim(world: World, kind: Kind, *, moment: float = 0.0, orderly: bool = False) -> Shot:
    losses = cast(Losses, Taken(world.calls))
    return Injector(cast(LiveCluster, world), "accounts", losses).aim(Fault(1, kind, False, moment, orderly))


def test_the_operator_that_holds_the_lease_is_hit() -> None:
    world = World(operators=[pod("tidegate-a"), pod("tidegate-b")], leader="tidegate-b_1234")
    assert "tidegate-b" in aim(world, Kind.OPERATOR).target


@pytest.mark.parametrize("leader", [None, ""])
def test_while_no_operator_leads_none_is_hit(leader: str | None) -> None:
    with pytest.raises(AssertionError, match="no operator pod is ''"):
        aim(World(operators=[pod("tidegate-a")], leader=leader), Kind.OPERATOR)


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


def test_a_pod_that_was_replaced_meanwhile_was_not_hit() -> None:
    world = World(driver=pod("accounts-driver"), refusal=ApiRefusedError(409, "another uid"))
    with pytest.raises(TargetGoneError):
        aim(world, Kind.DRIVER_POD).fire()


def test_a_process_that_ended_meanwhile_was_not_hit(process: SimpleNamespace) -> None:
    shot = aim(World(driver=pod("accounts-driver")), Kind.DRIVER_JVM)
    process.identity.alive = lambda: False
    with pytest.raises(TargetGoneError):
        shot.fire()


def test_an_operator_is_past_when_another_one_leads_and_not_just_any_is_ready() -> None:
    world = World(operators=[pod("tidegate-a"), pod("tidegate-b")], leader="tidegate-a_1")
    shot = aim(world, Kind.OPERATOR)
    assert not shot.past()
    world.leader = ""
    assert not shot.past()
    world.leader = "tidegate-b_1"
    assert shot.past()


def test_the_container_of_an_executor_has_the_name_that_the_operator_gives_it(containers: list[str]) -> None:
    aim(World(executors=[pod("e-1")]), Kind.EXECUTOR_PROCESS)
    assert containers == ["executor"]


def test_a_repartition_pod_is_hit_while_it_runs_and_waited_for_until_it_does() -> None:
    over, running = pod("accounts-repartition-4", phase="Succeeded"), pod("accounts-repartition-5")
    world = World(driver=pod("accounts-driver"), repartitions=[over, running])
    assert "accounts-repartition-5" in aim(world, Kind.REPARTITION_POD).target
    for none_that_runs in ([], [over], [pod("accounts-repartition-5", leaving=True)]):
        with pytest.raises(AssertionError, match="no repartition pod runs"):
            aim(World(driver=pod("accounts-driver"), repartitions=none_that_runs), Kind.REPARTITION_POD)


# --- what the operator relies on --------------------------------------------------------------------------------------

KILLED = ("DELETE", "/api/v1/namespaces/chaos/pods/accounts-driver")


@pytest.mark.parametrize(
    ("kind", "orderly", "call"),
    [
        (Kind.STATUS, True, ("status", None)),
        (Kind.STATUS, False, ("status", None)),
        (Kind.OLDER_STATUS, True, ("status", 0.25)),
        (Kind.OLDER_STATUS, False, ("status", 0.25)),
        (Kind.LABELS, True, ("labels", "accounts-driver", True)),
        (Kind.LABELS, False, ("labels", "accounts-driver", False)),
        (Kind.CATALOG, True, ("catalog", 0.25)),
        (Kind.CATALOG, False, ("catalog", None)),
        (Kind.RESOURCE, True, ("resource", False)),
        (Kind.RESOURCE, False, ("resource", True)),
    ],
)
def test_what_is_lost_is_lost_alone_or_with_a_pod_or_a_process(
    kind: Kind, orderly: bool, call: tuple[Any, ...], process: SimpleNamespace
) -> None:
    killed: list[str] = []
    process.kill = lambda: killed.append("leader")
    world = World(driver=pod("accounts-driver"), operators=[pod("tidegate-a")], leader="tidegate-a_1")
    aim(world, kind, moment=0.25, orderly=orderly).fire()
    *others, last = world.calls
    assert last == call
    assert [other[:2] for other in others] == [KILLED] * (kind in (Kind.STATUS, Kind.OLDER_STATUS) and not orderly)
    assert killed == ["leader"] * (kind is Kind.LABELS and not orderly)


def test_a_status_is_left_alone_where_the_pod_was_replaced_that_goes_with_it() -> None:
    world = World(driver=pod("accounts-driver"), refusal=ApiRefusedError(409, "another uid"))
    with pytest.raises(TargetGoneError):
        aim(world, Kind.STATUS).fire()
    assert [call[:2] for call in world.calls] == [KILLED]


def test_a_status_is_lost_also_while_there_is_no_driver() -> None:
    aim(World(), Kind.STATUS, orderly=True).fire()


# --- evictions and quotas ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("moment", "name"), [(0.0, "accounts-driver"), (0.49, "accounts-driver"), (0.5, "e-1"), (0.99, "e-2")]
)
def test_the_driver_is_evicted_as_often_as_an_executor_and_by_its_uid(moment: float, name: str) -> None:
    world = World(driver=pod("accounts-driver"), executors=[pod("e-1"), pod("e-2")])
    aim(world, Kind.EVICTION, moment=moment).fire()
    ((method, path, eviction),) = world.calls
    assert (method, path) == ("POST", f"/api/v1/namespaces/chaos/pods/{name}/eviction")
    assert (eviction["kind"], eviction["metadata"]) == ("Eviction", {"name": name, "namespace": "chaos"})
    assert eviction["deleteOptions"]["preconditions"] == {"uid": f"uid-of-{name}"}
    assert eviction["deleteOptions"]["gracePeriodSeconds"] == 1


def test_a_quota_forbids_pods_while_the_driver_s_is_gone_and_goes_itself() -> None:
    world = World(driver=pod("accounts-driver"))
    shot = aim(world, Kind.QUOTA)
    shot.fire()
    deleted, (method, path, quota) = world.calls
    assert deleted[:2] == KILLED
    assert (method, path, quota["spec"]) == ("POST", "/api/v1/namespaces/chaos/resourcequotas", {"hard": {"pods": "0"}})
    assert not shot.past()
    shot.heal()
    assert world.calls[-1] == ("DELETE", f"/api/v1/namespaces/chaos/resourcequotas/{NO_PODS}")
    world.driver = None
    assert shot.past()
