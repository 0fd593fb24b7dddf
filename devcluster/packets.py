"""Loses packets inside a cluster's namespaces, for tests of what is cut off. Changes the cluster's packet filter."""

import subprocess
from collections.abc import Sequence

from devcluster import node
from devcluster.cluster import Cluster
from devcluster.control import ComponentError

Rule = tuple[str, ...]
"""Arguments of iptables from the chain on."""


def between(chain: str, *match: str) -> Rule:
    """Return the rule that loses what matches; neither side learns of it."""
    return (chain, *match, "--jump", "DROP")


def from_api_server(address: str) -> tuple[Rule, Rule]:
    """Return the rules that cut an address, or a subnet, off from the API server."""
    port = str(node.API_PORT)
    return (
        between("INPUT", "--source", address, "--protocol", "tcp", "--dport", port),
        between("OUTPUT", "--destination", address, "--protocol", "tcp", "--sport", port),
    )


def lose(cluster: Cluster, rules: Sequence[Rule]) -> None:
    """Put the rules first; raise ComponentError if one is refused."""
    for rule in rules:
        _iptables(cluster, "--insert", rule)


def let_through(cluster: Cluster, rule: Rule) -> None:
    """Take a rule away; raise ComponentError if it is not there."""
    _iptables(cluster, "--delete", rule)


def _iptables(cluster: Cluster, what: str, rule: Rule) -> None:
    # kube-proxy changes rules all the time, under a lock.
    command = ("iptables", "--wait", "10", what, *rule)
    done = subprocess.run(cluster.enter(*command), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ComponentError(f"{' '.join(command)}: {done.stderr.strip()}")
