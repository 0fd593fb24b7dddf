"""A name means the kind that kubectl would mean by it."""

import pytest

from devcluster.kinds import first_named, full_name, read_resource

PODS = read_resource(
    "", "v1", {"resource": "pods", "responseKind": {"kind": "Pod"}, "scope": "Namespaced", "shortNames": ["po"]}
)
EVENTS = [
    read_resource(group, "v1", {"resource": "events", "responseKind": {"kind": "Event"}, "scope": "Namespaced"})
    for group in ("", "events.k8s.io")
]
NODES = read_resource(
    "", "v1", {"resource": "nodes", "singularResource": "node", "responseKind": {"kind": "Node"}, "scope": "Cluster"}
)
SERVED = [PODS, *EVENTS, NODES]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("pods", PODS),
        ("po", PODS),
        ("Node", NODES),
        ("events", EVENTS[0]),
        ("events.events.k8s.io", EVENTS[1]),
        ("events.v1.events.k8s.io", EVENTS[1]),
        (full_name({"apiVersion": "events.k8s.io/v1", "kind": "Event"}), EVENTS[1]),
        (full_name({"apiVersion": "v1", "kind": "Event"}), EVENTS[0]),
        ("pods.apps", None),
        ("lamps", None),
    ],
)
def test_a_name_means_the_first_kind_that_has_it(name: str, meant: object) -> None:
    assert first_named(SERVED, name) == meant


def test_an_object_of_a_namespace_is_found_in_it_and_one_of_the_cluster_in_none() -> None:
    assert PODS.path("shop", "orders driver") == "/api/v1/namespaces/shop/pods/orders%20driver"
    assert NODES.path("shop") == "/api/v1/nodes"
    assert EVENTS[1].path("shop") == "/apis/events.k8s.io/v1/namespaces/shop/events"
