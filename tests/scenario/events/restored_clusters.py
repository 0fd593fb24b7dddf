"""etcd is restored from a backup under operators that run: all objects are at once as they were, and none has an event.

Not among what every schedule has: a course that is about it chooses from these. What storages, drivers and nodes have
done since then stays done. Each process of the operator sees nothing more until it notices, and then it ends.
"""

from tests.scenario.api_server import APPS, MESSAGES, PODS, Body, place_of
from tests.scenario.world import World

_UNREAD = "events"
_NOTICED_WITHIN = 40.0
"""Seconds until a process has found out: the longest pause of a watch, and some for the answer."""
_STARTED_AGAIN_WITHIN = 20.0
"""Seconds until a kubelet that finds a pod of its own starts it."""


def back_up_cluster(w: World) -> str | None:
    """Somebody backs etcd up."""
    w.cluster_backup = dict(w.api.objects)
    return "etcd is backed up"


def restore_cluster(w: World) -> str | None:
    """Somebody restores the backup of etcd."""
    if not w.cluster_backup:
        return None
    for process in list(w.operators):
        noticed = w.some(0.5, _NOTICED_WITHIN)
        for plural in (APPS, PODS, MESSAGES):
            process.stalled_until[plural] = w.now() + 2 * _NOTICED_WITHIN
        w.later(noticed, w.crash, process, "because resource versions went back")
    w.all_noticed_at = w.now() + _NOTICED_WITHIN
    then, now = w.cluster_backup, dict(w.api.objects)
    for path in sorted({*then, *now}):
        plural = place_of(path).plural
        if plural == APPS:
            _restore_app(w, path, then.get(path), now.get(path))
        elif plural == PODS:
            _restore_pod(w, path, then.get(path), now.get(path))
        elif plural != _UNREAD:
            _restore_object(w, path, then.get(path), now.get(path))
    w.count("restored a backup of etcd")
    return "etcd is restored from its backup"


def _restore_app(w: World, path: str, then: Body | None, now: Body | None) -> None:
    if then is now:
        return
    if now is not None and (then is None or then["metadata"]["uid"] != now["metadata"]["uid"]):
        w.check.lose_status(now["metadata"]["uid"], restored=False)
        w.api.vanish(path)
        now = None
    if then is None:
        return
    uid = then["metadata"]["uid"]
    w.check.lose_status(uid, restored=True)
    if now is not None:
        w.check.write_lineage(uid, *((app.get("status") or {}).get("lineage", 0) for app in (now, then)))
    if now is None or "deletionTimestamp" in now["metadata"]:
        w.come_back(then)
        w.later(_NOTICED_WITHIN, w.check.note_deletion, path, uid)
        w.count("an application that was deleted is there again")
    w.api.put_back(path, then)
    w.count("an application is as it was before")


def _restore_pod(w: World, path: str, then: Body | None, now: Body | None) -> None:
    is_same = then is not None and now is not None and then["metadata"]["uid"] == now["metadata"]["uid"]
    if is_same:
        return  # its kubelet reports at once how it is
    if now is not None:
        w.api.vanish(path)
        w.count("a pod vanished")
    if then is not None:
        w.api.put_back(path, then)
        w.check.pods_put_back.add(then["metadata"]["uid"])
        w.check.rules.failures.pop(then["metadata"]["uid"], None)  # its disk went with it, and the account on that
        w.later(w.some(0.1, _STARTED_AGAIN_WITHIN), w.cluster.find_again, path, then["metadata"]["uid"])
        w.count("a pod is there again")


def _restore_object(w: World, path: str, then: Body | None, now: Body | None) -> None:
    if then is now:
        return
    if now is not None and (then is None or then["metadata"]["uid"] != now["metadata"]["uid"]):
        w.api.vanish(path)
    if then is not None:
        w.api.put_back(path, then)
        if place_of(path).plural == MESSAGES:
            w.restored_message(then)
