"""The demo brings Tidegate where there is none, and leaves alone what is not its own."""

import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from devcluster.demo import installing
from devcluster.demo.console import Narrator, StepFailedError
from devcluster.demo.kubernetes import Kubernetes
from devcluster.environment import Environment
from devcluster.installation import Installed, Release

SITE = Environment(Path("kubeconfig"), "http://s3", "http://s3", "a", "s", "k:1", "k:1", "registry:5/op:1", "s", "t")


@dataclass(frozen=True)
class Recorded(Kubernetes):
    """A cluster with the given operators, that writes down what it is told."""

    operators: tuple[dict[str, Any], ...] = ()
    reported: list[str] = field(default_factory=list)

    def ctl(self, *arguments: str, stdin: str | None = None, timeout: float = 60.0) -> str:
        if arguments[:2] == ("get", "crd"):
            return ""
        if arguments[:2] == ("get", "deployments"):
            return json.dumps({"items": list(self.operators)})
        self.reported.append(arguments[0])
        return ""

    def install_chart(self, release: str, *_: object, **__: object) -> None:
        self.reported.append(f"install {release}")


def cluster_with(*operators: dict[str, Any]) -> Recorded:
    return Recorded(Path("kubectl"), Path("helm"), Path("kubeconfig"), operators)


def operator(watched: str) -> dict[str, Any]:
    container = {"image": "theirs:1", "env": [{"name": "TIDEGATE_WATCH_NAMESPACES", "value": watched}]}
    return {
        "metadata": {"name": "gate", "namespace": "gates"},
        "spec": {"template": {"metadata": {}, "spec": {"containers": [container]}}},
    }


def have_tidegate(cluster: Recorded) -> tuple[bool, str]:
    output = io.StringIO()
    narrator = Narrator(Console(file=output, width=200, highlight=False))
    return installing.have_tidegate(narrator, cluster, SITE, "demo"), output.getvalue()


def test_where_there_is_none_the_chart_is_installed() -> None:
    cluster = cluster_with()
    assert have_tidegate(cluster)[0]
    assert cluster.reported == ["install tidegate"]


def test_one_that_is_there_is_used_as_it_is_and_said_to_be() -> None:
    cluster = cluster_with(operator(""))
    own, said = have_tidegate(cluster)
    assert not own
    assert cluster.reported == ["rollout"]
    assert "deployment gate in namespace gates, which serves all namespaces" in said


def test_beside_one_that_serves_other_namespaces_nothing_is_done_and_the_remedy_is_said() -> None:
    cluster = cluster_with(operator("team-a"))
    with pytest.raises(StepFailedError) as failed:
        have_tidegate(cluster)
    assert cluster.reported == []
    assert "add the namespace demo to its watchNamespaces" in failed.value.remedy


@pytest.mark.parametrize(
    ("found", "enabled"),
    [
        (Installed(), True),
        (Installed(has_crd=True, crd_release=installing.RELEASE), True),
        (Installed(has_crd=True, crd_release=Release("other", "place")), False),
        (Installed(has_crd=True), False),
    ],
    ids=["none", "of an earlier demo", "of another release", "applied by kubectl"],
)
def test_the_crd_comes_with_the_chart_unless_it_is_somebody_elses(found: Installed, enabled: bool) -> None:
    values = installing.chart_values("registry:5/op:1", "sha256:0", found)
    assert values["crds"] == {"enabled": enabled}
    assert values["image"] == {"repository": "registry:5/op", "tag": "1"}
