"""The development cluster itself: it runs pods, two stand side by side, and nothing of them stays."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster import busybox, cgroups, kafka, paths, s3
from devcluster.cluster import Cluster
from devcluster.processes import descendants
from tidegate_testing.kubectl import Kubectl
from tidegate_testing.waiting import wait_for

# Where container runtimes, pod networks and kubelets like to leave something.
SHARED_PLACES = ("/run", "/run/netns", "/var/lib", "/var/lib/cni", "/var/log/pods", "/opt", "/etc/cni")
CGROUPS = ("tidegate-", "kube", "k8s.io", "system.slice:containerd")
OTHERS = "tidegate-e2e"
"""How the cgroups of the clusters begin that other workers start and end meanwhile."""
NAMESPACES = ("net", "mnt", "pid")


def traces() -> dict[str, set[str]]:
    """What a cluster could leave on the machine, and nothing that others may do there meanwhile."""
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    groups = {c for hierarchy in cgroups.hierarchies() for c in hierarchy.iterdir() if c.name.startswith(CGROUPS)}
    return {
        "files": {str(f) for place in SHARED_PLACES if Path(place).is_dir() for f in Path(place).iterdir()},
        "mounts": {m for m in mounts if m.startswith((*SHARED_PLACES, str(paths.cache() / "clusters")))},
        "links": {p.name for p in Path("/sys/class/net").iterdir()},
        "cgroups": {str(group) for group in groups if not group.name.startswith(OTHERS)},
    }


def namespaces_of(pid: int) -> set[str]:
    return {os.readlink(f"/proc/{pid}/ns/{kind}") for kind in NAMESPACES}


def all_namespaces() -> set[str]:
    """The namespaces of every process of the machine."""
    found: set[str] = set()
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                found |= namespaces_of(int(process.name))
            except OSError:
                continue  # it ended while we looked
    return found


def kubectl_of(cluster: Cluster) -> Kubectl:
    return Kubectl(cluster.kubectl, cluster.kubeconfig)


def run_pod(kubectl: Kubectl, script: str) -> None:
    kubectl.run("run", "shell", "--image", busybox.SHELL_IMAGE, "--restart=Never", "--", "sh", "-c", script)
    kubectl.run("wait", "--for=condition=Ready", "pod/shell", "--timeout=60s", timeout=90)


@pytest.fixture
def clusters() -> Iterator[tuple[Cluster, Cluster]]:
    both = Cluster(f"one-{os.getpid()}"), Cluster(f"two-{os.getpid()}")
    yield both
    for each in both:
        each.down()


def test_two_clusters_run_pods_side_by_side_and_leave_nothing_behind(clusters: tuple[Cluster, Cluster]) -> None:
    before = traces()
    kubectls = [kubectl_of(cluster.up()) for cluster in clusters]
    for kubectl in kubectls:
        run_pod(kubectl, "echo started; sleep 3600")
        assert kubectl.run("logs", "shell") == "started\n"
        assert "10.96.0.1" in kubectl.run("exec", "shell", "--", "nslookup", "kubernetes.default.svc.cluster.local")
    inside = [cluster.control.first_process() for cluster in clusters]
    processes = {pid for first in inside for pid in [first, *descendants(first)]}
    namespaces = {n for first in inside for n in namespaces_of(first)} - namespaces_of(os.getpid())
    assert len(namespaces) == len(clusters) * len(NAMESPACES)

    for cluster in clusters:
        cluster.down()

    assert [pid for pid in processes if Path(f"/proc/{pid}").exists()] == []
    assert namespaces & all_namespaces() == set()
    assert [cluster.folder for cluster in clusters if cluster.folder.exists()] == []
    assert {kind: seen - before[kind] for kind, seen in traces().items() if seen - before[kind]} == {}


def test_a_name_outside_the_cluster_is_unknown_at_once_and_nothing_outside_is_reached(
    clusters: tuple[Cluster, Cluster],
) -> None:
    kubectl = kubectl_of(clusters[0].up())
    run_pod(kubectl, "sleep 3600")
    answer = kubectl.run("exec", "shell", "--", "sh", "-c", "nslookup example.com || true", timeout=5)
    assert "NXDOMAIN" in answer
    outside = kubectl.run(
        "exec", "shell", "--", "sh", "-c", "nc -w 2 192.0.2.1 80 </dev/null && echo open || echo shut"
    )
    assert outside == "shut\n"


def test_up_keeps_a_healthy_cluster_and_replaces_a_broken_one(clusters: tuple[Cluster, Cluster]) -> None:
    cluster = clusters[0].up()
    first = cluster.control.first_process()
    assert cluster.up().control.first_process() == first

    cluster.control.stop("kubelet", grace=0)
    assert cluster.problem() == "has components that do not run: kubelet"
    run_pod(kubectl_of(cluster.up()), "sleep 3600")
    assert cluster.problem() is None
    assert cluster.control.first_process() != first


def test_services_keep_their_data_over_a_crash_and_pods_reach_them(clusters: tuple[Cluster, Cluster]) -> None:
    cluster = clusters[0].up()
    s3.up(cluster)
    kafka.up(cluster)
    s3.ensure_bucket(cluster, "kept")
    kafka.create_topic(cluster.kafka_host, "kept")

    s3.stop(cluster, grace=0)
    kafka.stop(cluster, grace=0)
    s3.start(cluster)
    kafka.start(cluster)

    objects = s3.client(cluster.s3_endpoint_host, cluster.s3_keys)
    assert [b["Name"] for b in objects.list_buckets()["Buckets"]] == ["kept"]
    assert kafka.topics(cluster.kafka_host) >= {"kept"}
    kubectl = kubectl_of(cluster)
    run_pod(kubectl, "sleep 3600")
    assert kubectl.run("exec", "shell", "--", "wget", "-qO-", f"{cluster.s3_endpoint_pods}/health") == "OK"
    host, _, port = cluster.kafka_pods.partition(":")
    kubectl.run("exec", "shell", "--", "sh", "-c", f"nc -w 5 {host} {port} </dev/null")


def test_a_port_of_a_pod_is_forwarded_to_the_machine(clusters: tuple[Cluster, Cluster]) -> None:
    cluster = clusters[0].up()
    kubectl = kubectl_of(cluster)
    run_pod(kubectl, "echo hello >/tmp/index.html; httpd -f -p 8080 -h /tmp")
    forwarding = subprocess.Popen(
        [cluster.kubectl, "--kubeconfig", cluster.kubeconfig, "port-forward", "pod/shell", ":8080"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert forwarding.stdout is not None
    try:
        port = forwarding.stdout.readline().partition("127.0.0.1:")[2].split(" ")[0]
        fetch = ["busybox", "wget", "-qO-", f"http://127.0.0.1:{port}/"]
        page = wait_for(
            "the page of the pod",
            lambda: subprocess.run(fetch, capture_output=True, text=True, check=False).stdout,
            timeout=20,
        )
        assert page == "hello\n"
    finally:
        forwarding.kill()
        forwarding.wait()
        forwarding.stdout.close()
