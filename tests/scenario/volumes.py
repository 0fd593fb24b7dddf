"""What a kubelet does about a pod whose ConfigMap volume cannot be filled: nothing that the pod shows, and an event."""

from tests.scenario.api_server import ApiServer, Body, time_at

RETRIES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 122.0)
"""Seconds between two attempts to mount, the last for ever: as a real kubelet's."""

WITHOUT_VOLUMES: Body = {"waiting": {"reason": "ContainerCreating"}}
"""State of a container whose pod's volumes are not mounted yet."""


def unfilled_volume(api: ApiServer, pod: Body) -> tuple[str, str] | None:
    """Return the first volume whose source is missing, and what the kubelet calls that; None if all can be mounted."""
    namespace = pod["metadata"]["namespace"]
    for volume in pod["spec"].get("volumes", ()):
        for kind, source, field in (("configmap", "configMap", "name"), ("secret", "secret", "secretName")):
            wanted = volume.get(source, {})
            name = wanted.get(field, "")
            if not name or wanted.get("optional"):
                continue
            if api.find(f"/api/v1/namespaces/{namespace}/{kind}s/{name}") is None:
                return volume["name"], f'{kind} "{name}"'
    return None


def report_of_volume(api: ApiServer, pod: Body, unfilled: tuple[str, str], now: float) -> int:
    """Write the event that a volume cannot be mounted, or count one more; returns how often it was written."""
    volume, source = unfilled
    about = pod["metadata"]
    collection = f"/api/v1/namespaces/{about['namespace']}/events"
    event = f"{about['name']}.{about['uid']}.{volume}"
    known = api.find(f"{collection}/{event}")
    times = known["count"] + 1 if known is not None else 1
    last = {"lastTimestamp": time_at(int(now)), "count": times}
    if known is not None:
        api.patch(f"{collection}/{event}", last)
        return times
    body = {
        "metadata": {"name": event, "namespace": about["namespace"]},
        "involvedObject": {"kind": "Pod", "name": about["name"], "uid": about["uid"]},
        "type": "Warning",
        "reason": "FailedMount",
        "message": f'MountVolume.SetUp failed for volume "{volume}" : {source} not found',
        **last,
    }
    api.create(collection, body)
    return times
