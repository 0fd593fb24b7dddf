"""Brings up what the demo runs on, step by step: the development cluster, or one of your own. Starts processes."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from devcluster import environment, images, kafka, s3, tools
from devcluster.cluster import Cluster
from devcluster.demo.console import Narrator
from devcluster.demo.kubernetes import Kubernetes
from devcluster.environment import Environment


def set_up(narrator: Narrator, name: str) -> Environment:
    """Return the cluster that $TIDEGATE_KUBECONFIG names, or else the development cluster ``name``, ready for use.

    Raises:
        StepFailedError: something did not come up.
    """
    if os.environ.get(environment.KUBECONFIG):
        with narrator.step(f"Using the cluster that {environment.KUBECONFIG} names", "see docs/development.md"):
            found = environment.foreign(os.environ)
            connect(found).ctl("get", "--raw", "/readyz", timeout=20)
        return found
    again = "fix that, then make demo again; make cluster-down begins from nothing"
    # Builders write to the terminal themselves.
    with narrator.step("Programs of the cluster (built once, kept in the cache)", again, moving=False):
        tools.ensure()
    cluster, wanted = Cluster(name), [images.OPERATOR, images.SPARK]
    with narrator.step("Images: operator and Spark (only what has changed)", "make images shows the whole build"):
        if cluster.healthy():
            images.build(wanted)
        else:
            images.unpack(wanted)
    with narrator.step(f"Kubernetes: cluster {name!r}", again):
        cluster.up(seeded=True)
        images.give(cluster, wanted)
    with narrator.step("Object storage (S3)", again):
        s3.up(cluster)
    with narrator.step("Kafka broker", again):
        kafka.up(cluster)
    return environment.of_cluster(cluster)


def connect(site: Environment) -> Kubernetes:
    """Return the programs with which the cluster is spoken to: a person's own for a foreign one, if there are any."""
    own = {name: shutil.which(name) for name in ("kubectl", "helm")} if not site.own else {}
    if not all(own.get(name) for name in ("kubectl", "helm")):
        tools.ensure()
    programs = {name: Path(own.get(name) or tools.program(name)) for name in ("kubectl", "helm")}
    return Kubernetes(programs["kubectl"], programs["helm"], site.kubeconfig)


def image_digest(site: Environment, image: str) -> str:
    """Return what identifies an image's content in the development cluster; empty for a foreign one.

    The tag "dev" is always the same. Without the digest in the pod's template, an operator built again would not
    be started by an upgrade of the chart.
    """
    if site.cluster is None:
        return ""
    found = re.search(r"sha256:[0-9a-f]{64}", site.cluster.ctr("images", "ls", f"name=={image}"))
    return found.group() if found else ""


def kubectl_hint(site: Environment, arguments: str) -> str:
    """Return the command with which a person asks the cluster."""
    if site.cluster is None:
        return f"kubectl --kubeconfig {site.kubeconfig} {arguments}"
    name = "" if site.cluster.name == "dev" else f"NAME={site.cluster.name} "
    return f'make kubectl {name}ARGS="{arguments}"'


def clean_up_hint(site: Environment, app: str, namespace: str, *, own: bool) -> str:
    """Return the command that removes what the demo made; ``own`` says whether the operator is the demo's own."""
    if site.cluster is None:
        then = ", then helm uninstall tidegate -n tidegate-system" if own else "; the operator is not the demo's"
        return f"kubectl delete sapp {app} -n {namespace}{then}"
    return "make cluster-down" + ("" if site.cluster.name == "dev" else f" NAME={site.cluster.name}")
