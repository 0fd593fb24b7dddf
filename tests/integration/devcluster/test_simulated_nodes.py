"""Nodes that kwok simulates stay ready."""

import pytest

from devcluster import kwok
from devcluster.apiclient import ApiClient
from devcluster.apiserver import ApiServer
from tidegate_testing.waiting import wait_for

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/kwok-0"


@pytest.mark.long
def test_a_simulated_node_renews_its_lease_so_that_it_is_never_taken_for_dead() -> None:
    with ApiServer(kwok_nodes=1) as server:
        client = ApiClient(server.kubeconfig)
        wait_for("the node's lease", lambda: client.exists(LEASE), timeout=180)
        first = client.get(LEASE)["spec"]
        assert first["leaseDurationSeconds"] == kwok.LEASE_SECONDS
        wait_for("the lease to be renewed", lambda: client.get(LEASE)["spec"]["renewTime"] > first["renewTime"], 180)
