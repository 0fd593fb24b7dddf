"""What the operator may do is what it does, and what the docs say. Reads the chart's and the docs' files."""

import re
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

from tidegate.access.builders.access import DRIVER_RULES
from tidegate_testing.chart_rules import TEMPLATES, Grant, grant_for, grants, rules_of

ROOT = Path(__file__).parents[3]

# What the operator's code calls, and where.
OPERATOR_CALLS: dict[tuple[str, str], set[str]] = {
    ("tidegate.dev", "streamingapps"): {"get", "list", "watch", "patch"},
    ("tidegate.dev", "streamingapps/status"): {"patch"},
    ("tidegate.dev", "streamsnapshots"): {"get", "list", "watch", "create", "patch", "delete"},
    ("tidegate.dev", "streamsnapshots/status"): {"patch"},
    ("tidegate.dev", "controlmessages"): {"get", "list", "watch", "create", "delete"},
    ("tidegate.dev", "controlmessages/status"): {"patch"},
    ("", "pods"): {"get", "list", "watch", "create", "patch", "delete"},
    ("", "secrets"): {"create", "delete"},
    ("", "serviceaccounts"): {"get", "create", "delete"},
    ("rbac.authorization.k8s.io", "roles"): {"get", "create", "delete"},
    ("rbac.authorization.k8s.io", "rolebindings"): {"get", "create", "delete"},
    ("", "resourcequotas"): {"list"},
    ("", "limitranges"): {"list"},
    ("", "configmaps"): {"get"},
    ("", "persistentvolumeclaims"): {"get"},
    ("", "events"): {"create", "list"},
}
# In its own namespace alone.
KEY_CALLS: set[Grant] = {("", "secrets", verb) for verb in ("get", "create")}
LEASE_CALLS: set[Grant] = {("coordination.k8s.io", "leases", verb) for verb in ("get", "create", "patch")}


def all_rules() -> list[Mapping[str, Any]]:
    documents = [
        yaml.safe_load(re.sub(r"\{\{.*?\}\}", "", part, flags=re.DOTALL))
        for part in (TEMPLATES / "user-roles.yaml").read_text().split("---")
    ]
    of_users = [rule for document in documents for rule in document["rules"]]
    of_operators = [rules_of(f"tidegate.{kind}Rules") for kind in ("operator", "driver", "key", "lease")]
    return [*chain.from_iterable(of_operators), *of_users]


def test_the_operator_is_granted_what_it_calls_and_nothing_else() -> None:
    called = {(group, resource, verb) for (group, resource), verbs in OPERATOR_CALLS.items() for verb in verbs}
    assert grants(rules_of("tidegate.operatorRules")) == called


def test_the_operator_may_create_leases_and_change_the_one_of_its_release() -> None:
    rules = rules_of("tidegate.leaseRules")
    assert grants(rules) == LEASE_CALLS
    unnamed = [rule["verbs"] for rule in rules if rule.get("resourceNames") != ['{{ include "tidegate.leaseName" . }}']]
    assert unnamed == [["create"]]


def test_the_operator_reads_no_secret_but_the_one_with_its_key() -> None:
    rules = rules_of("tidegate.keyRules")
    assert grants(rules) == KEY_CALLS
    unnamed = [rule["verbs"] for rule in rules if rule.get("resourceNames") != ['{{ include "tidegate.keyName" . }}']]
    assert unnamed == [["create"]]


# Whose names the operator learns from others: applications and what they name, snapshots, messages, namespaces. RBAC
# has no patterns.
NAMED_BY_OTHERS = {resource.partition("/")[0] for _, resource in OPERATOR_CALLS}


def test_what_has_one_name_is_granted_by_that_name_alone() -> None:
    rules = [*rules_of("tidegate.operatorRules"), *rules_of("tidegate.leaseRules"), *rules_of("tidegate.keyRules")]
    by_name = {name for rule in rules if "resourceNames" in rule for name in rule["resources"]}
    free = {name.partition("/")[0] for rule in rules for name in rule["resources"] if rule["verbs"] != ["create"]}
    assert by_name == {"leases", "secrets"}
    assert free - by_name <= NAMED_BY_OTHERS, (
        f"give the rules for {sorted(free - by_name - NAMED_BY_OTHERS)} in charts/tidegate/templates/_rules.tpl the "
        "resourceNames that there are"
    )
    of_its_own = [*rules_of("tidegate.leaseRules"), *rules_of("tidegate.keyRules")]
    assert all("resourceNames" in rule or rule["verbs"] == ["create"] for rule in of_its_own)


CLUSTER_SCOPED = {
    "nodes",
    "namespaces",
    "customresourcedefinitions",
    "clusterroles",
    "clusterrolebindings",
    "persistentvolumes",
    "storageclasses",
    "priorityclasses",
    "validatingadmissionpolicies",
}


def test_the_operator_is_granted_nothing_that_only_a_whole_cluster_has() -> None:
    """So that a Role in each of its namespaces suffices."""
    assert {resource for _, resource, _ in grants(rules_of("tidegate.operatorRules"))} & CLUSTER_SCOPED == set(), (
        "a Role cannot grant these: take them out of tidegate.operatorRules in charts/tidegate/templates/_rules.tpl"
    )


@pytest.mark.parametrize(
    ("request_line", "needed"),
    [
        ("GET /api/v1/namespaces/shop/pods/orders-driver", ("", "pods", "get")),
        ("GET /api/v1/pods?labelSelector=x", ("", "pods", "list")),
        ("GET /api/v1/namespaces/shop/pods?watch=1", ("", "pods", "watch")),
        ("DELETE /api/v1/namespaces/shop/pods?labelSelector=x", ("", "pods", "deletecollection")),
        ("POST /api/v1/namespaces/shop/pods?dryRun=All", ("", "pods", "create")),
        (
            "PATCH /apis/tidegate.dev/v1alpha1/namespaces/shop/streamingapps/orders/status",
            ("tidegate.dev", "streamingapps/status", "patch"),
        ),
    ],
)
def test_a_request_needs_what_the_api_server_asks_for_it(request_line: str, needed: Grant) -> None:
    method, _, path = request_line.partition(" ")
    assert grant_for(method, path) == needed


def test_the_operator_holds_what_it_grants_to_drivers() -> None:
    assert grants(rules_of("tidegate.driverRules")) == grants(DRIVER_RULES)


@pytest.mark.parametrize("field", ["apiGroups", "resources", "verbs"])
def test_no_rule_has_a_wildcard(field: str) -> None:
    assert [rule for rule in all_rules() if any("*" in entry for entry in rule[field])] == [], (
        "name what is granted in charts/tidegate/templates/_rules.tpl, without *"
    )


@pytest.mark.parametrize("verb", ["escalate", "bind", "impersonate"])
def test_no_rule_lets_anyone_grant_more_than_they_hold(verb: str) -> None:
    assert [rule for rule in all_rules() if verb in rule["verbs"]] == [], (
        f"take {verb} out of these rules in charts/tidegate/templates"
    )


def test_people_may_not_write_the_status() -> None:
    of_status = [r for r in all_rules() if any(name.endswith("/status") for name in r["resources"])]
    operators = [r for r in rules_of("tidegate.operatorRules") if r["verbs"] == ["patch"]]
    assert [r for r in of_status if r["verbs"] != ["get"]] == operators
    statuses = ("streamingapps/status", "streamsnapshots/status", "controlmessages/status")
    assert [r["resources"] for r in operators] == [[name] for name in statuses]


def test_the_install_page_lists_exactly_the_operators_rules() -> None:
    rows = re.findall(
        r"^\| `([^|]*)` \| `([^|]+)` \| ([a-z, ]+) \|", (ROOT / "docs/install.md").read_text(), re.MULTILINE
    )
    documented = {
        ("" if group == "core" else group, resource, verb)
        for group, resources, verbs in rows
        for resource in resources.split("`, `")
        for verb in verbs.split(", ")
    }
    kinds = ("operator", "driver", "key", "lease")
    assert documented == set(chain.from_iterable(grants(rules_of(f"tidegate.{kind}Rules")) for kind in kinds)), (
        "the tables of permissions in docs/install.md list the rules of charts/tidegate/templates/_rules.tpl"
    )
