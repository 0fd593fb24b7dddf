"""What people say to applications, and take back."""

from tests.scenario.api_server import MESSAGES, Body
from tests.scenario.events.registry import event
from tests.scenario.world import BILLING, ORDERS, World


@event(6)
def send_messages(w: World) -> str | None:
    """Send some, within a second or over a while."""
    app, number = w.rng.choice((ORDERS, ORDERS, BILLING)), w.rng.choice((1, 1, 2, 5))
    gap = w.rng.choice((0.0, 0.05, 3.0))
    for count in range(number):
        w.later(count * gap, _send, w, app)
    return f"{number} messages to {app}, one each {gap:g} s"


def _send(w: World, app: str) -> None:
    # Names in no order: whoever goes by them mixes messages up.
    name = f"{w.rng.choice('abcdef')}-{w.api.version}"
    spec: Body = {"appRef": {"name": app}, "type": "ping"}
    ttl = w.rng.choice((0, 0, 2, 30))
    if ttl:
        spec["expirationSeconds"] = ttl
    manifest = {"apiVersion": "tidegate.dev/v1alpha1", "metadata": {"name": name, "namespace": "shop"}, "spec": spec}
    w.api.create(w.messages_path, manifest)
    w.count("sent a message")


@event(1)
def take_message_back(w: World) -> str | None:
    there = w.api.all(MESSAGES)
    if not there:
        return None
    name = w.rng.choice(there)["metadata"]["name"]
    w.api.delete(f"{w.messages_path}/{name}")
    return f"somebody deletes message {name}"
