"""Labels that somebody takes off pods, changes, or puts back."""

from tests.scenario.api_server import PODS
from tests.scenario.events.pods import path_of
from tests.scenario.world import World
from tidegate_spark.contract.protocol import LABEL_APP, LABEL_EPOCH, LABEL_MANAGED_BY, LABEL_ROLE, ROLE_DRIVER

_OURS = (LABEL_APP, LABEL_EPOCH, LABEL_MANAGED_BY, LABEL_ROLE)


def change_labels(w: World) -> str | None:
    """Somebody takes labels off a pod, or changes them; sometimes they are put back."""
    owned = [body for body in w.api.all(PODS) if body["metadata"].get("ownerReferences")]
    drivers = [body for body in owned if body["metadata"].get("labels", {}).get(LABEL_ROLE) == ROLE_DRIVER]
    chosen = drivers if drivers and w.rng.random() < 0.5 else owned
    if not chosen:
        return None
    pod = w.rng.choice(chosen)
    path, before = path_of(pod), dict(pod["metadata"].get("labels", {}))
    taken = w.rng.choice(((LABEL_MANAGED_BY,), _OURS, _OURS, (LABEL_ROLE, LABEL_EPOCH)))
    value = w.rng.choice((None, None, "7"))
    w.api.patch(path, {"metadata": {"labels": dict.fromkeys(taken, value)}})
    if w.rng.random() < 0.3:
        w.later(w.rng.choice((0.0, 2.0, 40.0)), _put_back, w, path, pod["metadata"]["uid"], before)
    return f"somebody sets {', '.join(taken)} of {path} to {value}"


def _put_back(w: World, path: str, uid: str, labels: dict[str, str]) -> None:
    pod = w.api.find(path)
    if pod is not None and pod["metadata"]["uid"] == uid:
        w.api.patch(path, {"metadata": {"labels": labels}})
