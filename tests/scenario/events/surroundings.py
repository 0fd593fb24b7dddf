"""What befalls nodes, the object store, the registry and the namespace."""

from tests.scenario.events.registry import event
from tests.scenario.world import World


@event(4)
def lose_node(w: World) -> str | None:
    busy = [container.node.name for container in w.cluster.containers.values() if container.name == "driver"]
    name = w.rng.choice(busy or sorted(w.cluster.nodes))
    node = w.cluster.nodes[name]
    if not node.reachable:
        return None
    how = w.rng.choice(("cut off", "cut off", "without power"))
    (w.cluster.power_off if how == "without power" else w.cluster.cut_off)(name)
    node.storeless = how == "cut off" and w.rng.random() < 0.3
    w.later(w.some(20.0, 900.0), w.cluster.heal, name)
    if w.rng.random() < 0.7:
        w.later(w.some(1.0, 90.0), _declare_out, w, name)
    return f"{name} is {how}" + (" and does not reach the store" if node.storeless else "")


def _declare_out(w: World, name: str) -> None:
    if not w.cluster.nodes[name].reachable:
        w.trace("people", f"declare {name} out of service")
        w.cluster.declare_out_of_service(name)


def _for_a_while(w: World, what: object, field: str, longest: float) -> float:
    seconds = w.some(1.0, longest)
    setattr(what, field, True)
    w.later(seconds, setattr, what, field, False)
    return seconds


@event(2)
def stop_store(w: World) -> str | None:
    return f"the object store is down for {_for_a_while(w, w.store, 'down', 200.0):.0f} s"


@event(1)
def lose_image(w: World) -> str | None:
    return f"images cannot be pulled for {_for_a_while(w, w.cluster, 'image_missing', 120.0):.0f} s"


@event(1)
def set_quota(w: World) -> str | None:
    return f"pods are refused for {_for_a_while(w, w, 'quota', 120.0):.0f} s"


@event(6)
def nothing(w: World) -> str | None:
    return "nothing"
