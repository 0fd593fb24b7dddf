"""Has Tidegate on the demo's cluster: the one that is there already, or else this checkout's. Runs kubectl and Helm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from devcluster import installation
from devcluster.demo.console import Narrator, StepFailedError
from devcluster.demo.kubernetes import Kubernetes
from devcluster.demo.setting_up import image_digest
from devcluster.environment import Environment
from devcluster.installation import CRD, INSTALLED_BY, Installed, Operator, Release, UnservedError

CHART = Path(__file__).parents[2] / "charts" / "tidegate"
RELEASE = Release("tidegate", "tidegate-system")
DEMO = "demo"
"""What the demo writes on the pods of operators that it installs, and upgrades only those."""


def have_tidegate(narrator: Narrator, kubernetes: Kubernetes, site: Environment, namespace: str) -> bool:
    """Return once an operator that serves ``namespace`` is ready; say whether it is the demo's own.

    Raises:
        StepFailedError: it did not become ready, or there is one that serves other namespaces.
    """
    with narrator.step("Looking for Tidegate on the cluster", "check that kubectl may list deployments"):
        found = installation.check(kubernetes.ctl)
    try:
        theirs = installation.to_use(found, namespace, DEMO)
    except UnservedError as unserved:
        remedy = f"add the namespace {namespace} to its watchNamespaces (docs/install.md), or take another cluster"
        raise StepFailedError("Nobody would run the demo's application", str(unserved), remedy) from unserved
    if theirs:
        _use(narrator, kubernetes, theirs)
    else:
        _install(narrator, kubernetes, site, found)
    return theirs is None


def _use(narrator: Narrator, kubernetes: Kubernetes, operator: Operator) -> None:
    remedy = f"kubectl -n {operator.namespace} describe deployment {operator.name}"
    with narrator.step(f"Using the Tidegate that is there: {operator}", remedy):
        narrator.say(f"  image {operator.image}; it is left as it is, and not that of this checkout")
        status = ("rollout", "status", f"deployment/{operator.name}", "-n", operator.namespace, "--timeout=120s")
        kubernetes.ctl(*status, timeout=130)


def _install(narrator: Narrator, kubernetes: Kubernetes, site: Environment, found: Installed) -> None:
    remedy = (
        f"kubectl -n {RELEASE.namespace} get pods,events; kubectl -n {RELEASE.namespace} logs deploy/{RELEASE.name}"
    )
    digest = image_digest(site, site.image_operator)
    values = chart_values(site.image_operator, digest, found)
    with narrator.step("Installing Tidegate: helm upgrade --install tidegate charts/tidegate", remedy):
        if not values["crds"]["enabled"]:
            narrator.say(f"  the CRD {CRD} is there already and not this release's: it is left as it is")
        kubernetes.install_chart(RELEASE.name, CHART, RELEASE.namespace, values, timeout=120)


def chart_values(image: str, digest: str, found: Installed) -> dict[str, Any]:
    """Return the chart's values: the image, and the CRD unless it is somebody else's. Pure."""
    repository, _, tag = image.rpartition(":")
    return {
        "image": {"repository": repository, "tag": tag},
        "podAnnotations": {INSTALLED_BY: DEMO, "tidegate.dev/image-digest": digest},
        "crds": {"enabled": not found.has_crd or found.crd_release == RELEASE},
    }
