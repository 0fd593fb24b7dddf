"""An application moves to another cluster: suspended in one, imported and gone on with in the other. Runs processes.

Two API servers with an operator each, two object stores, one broker; drivers and snapshot pods are real processes with
real Spark, and only the kubelet is played.
"""

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from devcluster import kafka, s3
from devcluster.apiserver import ApiServer
from devcluster.demo.application import build_application, committed_batches
from devcluster.demo.compare import TopicReader, compare, read_topic
from devcluster.demo.oracle import expected_decisions
from devcluster.demo.replay import Replay, create_topics
from devcluster.demo.scenario import Scenario
from devcluster.site import LocalSite
from tidegate_testing import class_archive
from tidegate_testing.apps import credentials
from tidegate_testing.crd import install_crds
from tidegate_testing.kubectl import Kubectl
from tidegate_testing.operator_process import ROOT, OperatorProcess
from tidegate_testing.process_kubelet import ProcessKubelet
from tidegate_testing.waiting import wait_for

NAMESPACE, APP = "shop", "temperature-control"
SAMPLE = ROOT / "spark_app" / "samples" / "temperature_control.py"
SCENARIO = Scenario(readings=3_000, shifts=15)
RATE = 200.0
"""Readings per second: so many that data flow while the application stops."""


@dataclass(frozen=True)
class Side:
    """One cluster with its object store."""

    kubectl: Kubectl
    site: LocalSite
    bucket: str
    kubelet: ProcessKubelet

    def app(self, brokers: str, **groups: Any) -> dict[str, Any]:
        options = {"brokers": brokers, "trigger": "500 milliseconds"}
        endpoint = self.site.s3_endpoint_host
        made = build_application(
            image="played", endpoint=endpoint, options=options, bucket=self.bucket, namespace=NAMESPACE
        )
        spec = made.manifest["spec"]
        spec["application"] |= {"main": f"local://{SAMPLE}", "runtime": "Injected"}
        spec["storage"]["deletionPolicy"] = "Retain"
        spec["state"] = {"partitions": 2}
        spec |= groups
        return made.manifest

    def status(self, kind: str, name: str) -> dict[str, Any]:
        status: dict[str, Any] = (self.kubectl.get(kind, name, NAMESPACE) or {}).get("status", {})
        return status

    def await_reason(self, reason: str) -> dict[str, Any]:
        """Return the condition Ready once it has that reason."""

        def probe() -> dict[str, Any]:
            found = self.kubectl.condition(self.kubectl.get("sapp", APP, NAMESPACE) or {}, "Ready")
            assert found.get("reason") == reason, f"{found}\n{self.kubelet.output(f'{APP}-driver')[-1500:]}"
            return found

        return wait_for(f"the reason {reason}", probe, 600, 0.5) or {}

    def await_snapshot(self, name: str) -> dict[str, Any]:
        def probe() -> dict[str, Any]:
            status = self.status("snap", name)
            assert status.get("phase") == "Ready", status
            return status

        return wait_for(f"snapshot {name}", probe, 300, 0.5) or {}

    def snapshot(self, name: str, **spec: Any) -> None:
        metadata = {"name": name, "namespace": NAMESPACE}
        resource = {"apiVersion": "tidegate.dev/v1alpha1", "kind": "StreamSnapshot", "metadata": metadata, "spec": spec}
        self.kubectl.apply(resource)

    def log(self, kind: str) -> list[int]:
        """Return the batches that the query's ``offsets`` or ``commits`` hold."""
        prefix = f"apps/{NAMESPACE}/{APP}/lineages/1/decisions/{kind}/"
        client = s3.client(self.site.s3_endpoint_host, self.site.s3_keys)
        listed = client.list_objects_v2(Bucket=self.bucket, Prefix=prefix)
        return committed_batches(found["Key"] for found in listed.get("Contents", []))

    def offsets(self, batch: int) -> list[str]:
        """Return the position of each source after a batch."""
        client = s3.client(self.site.s3_endpoint_host, self.site.s3_keys)
        key = f"apps/{NAMESPACE}/{APP}/lineages/1/decisions/offsets/{batch}"
        return client.get_object(Bucket=self.bucket, Key=key)["Body"].read().decode().splitlines()[2:]


def begin_side(stack: ExitStack, folder: Path, jars: Path, bucket: str) -> Side:
    """Start one cluster; it ends with the stack."""
    site = stack.enter_context(LocalSite())
    s3.up(site)
    s3.client(site.s3_endpoint_host, site.s3_keys).create_bucket(Bucket=bucket)
    server = stack.enter_context(ApiServer())
    kubectl = Kubectl(server.kubectl, server.kubeconfig)
    install_crds(kubectl)
    kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    kubectl.apply(credentials(NAMESPACE, site.s3_keys.access_key, site.s3_keys.secret_key))
    kubelet = stack.enter_context(ProcessKubelet(server.kubeconfig, folder / bucket, jars))
    operator = OperatorProcess(server.kubeconfig, folder / f"{bucket}.log", {"TIDEGATE_LEADER_ELECTION": "false"})
    operator.start()
    stack.callback(operator.end, signal.SIGTERM)
    return Side(kubectl, site, bucket, kubelet)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    """The old cluster and the new one; the broker is beside the old one's store."""
    folder = tmp_path_factory.mktemp("sides")
    jars = class_archive.jars()
    with ExitStack() as stack:
        old, new = (begin_side(stack, folder, jars, name) for name in ("old", "new"))
        kafka.up(old.site)
        yield old, new


def suspended(side: Side) -> bool:
    return side.status("sapp", APP).get("phase") == "Suspended"


def replay_and_suspend(old: Side, brokers: str) -> None:
    """Send all readings; the application is suspended when half of them are there, and the last wait until it rests."""

    def suspend() -> None:
        wait_for("a decision", lambda: read_topic(brokers, "decisions"), 600, 0.5)
        old.kubectl.patch("sapp", APP, NAMESPACE, {"spec": {"suspend": True}})

    def rest() -> None:
        wait_for("the old application to rest", lambda: suspended(old), 600, 0.5)

    due = [(SCENARIO.readings * 3 // 4, rest), (SCENARIO.readings // 2, suspend)]

    def progress(done: int) -> None:
        while due and done >= due[-1][0]:
            due.pop()[1]()

    def ready() -> None:
        wait_for("the first committed batch", lambda: old.log("commits"), 600, 0.5)

    Replay(brokers, "readings", "settings").run(SCENARIO.records(), ready=ready, progress=progress, rate=RATE)
    assert due == []


@pytest.mark.long
def test_an_application_moves_to_another_cluster_and_nothing_is_left_out_or_comes_twice(
    sides: tuple[Side, Side],
) -> None:
    old, new = sides
    brokers = old.site.kafka_host
    create_topics(brokers, {"readings": 4, "settings": 4, "decisions": 2})
    expected = expected_decisions(SCENARIO.records())

    old.kubectl.apply(old.app(brokers))
    replay_and_suspend(old, brokers)
    before = {decision["id"] for decision in read_topic(brokers, "decisions")}
    assert 0 < len(before) < len(expected)
    old.snapshot("moving", appRef={"name": APP})
    taken = old.await_snapshot("moving")
    assert taken["batch"] == old.log("commits")[-1] == old.log("offsets")[-1]

    # The new cluster reaches the old one's bucket with the old one's keys.
    keys = old.site.s3_keys
    new.kubectl.apply(credentials(NAMESPACE, keys.access_key, keys.secret_key, "old-keys"))
    place = {
        "endpoint": old.site.s3_endpoint_host,
        "pathStyleAccess": True,
        "credentialsSecretRef": {"name": "old-keys"},
    }
    new.snapshot("arriving", uri=taken["manifest"]["uri"], storage=place)
    arrived = new.await_snapshot("arriving")
    assert (arrived["snapshotId"], arrived["batch"]) == (taken["snapshotId"], taken["batch"])

    # Unless it is said that the old one does not run any more, this one must not write where that wrote.
    new.kubectl.apply(new.app(brokers, startFrom={"snapshotRef": {"name": "arriving"}}))
    refused = new.await_reason("QueryRefused")
    assert "topic 'decisions' of" in refused["message"]
    assert "spec.startFrom.outputs to TakeOver" in refused["message"]
    assert new.log("offsets")[-1] == taken["batch"]
    assert {decision["id"] for decision in read_topic(brokers, "decisions")} == before

    new.kubectl.patch("sapp", APP, NAMESPACE, {"spec": {"startFrom": {"outputs": "TakeOver"}, "restartNonce": 1}})
    await_decisions(brokers, set(expected))
    assert new.offsets(taken["batch"]) == old.offsets(taken["batch"])
    assert min(new.log("commits")) >= taken["batch"]
    began = new.status("sapp", APP)["startFrom"]
    assert (began["snapshotName"], began["id"]) == ("arriving", taken["snapshotId"])

    # Only an application that rests can send nothing wrong any more.
    new.kubectl.patch("sapp", APP, NAMESPACE, {"spec": {"suspend": True}})
    wait_for("the new application to rest", lambda: suspended(new), 600, 0.5)
    assert suspended(old)
    comparison = compare(expected, read_topic(brokers, "decisions"))
    assert comparison.ok, comparison.report()
    # Both stopped at a batch's end, and no batch was run twice.
    assert comparison.duplicates == 0, comparison.report()


def await_decisions(brokers: str, expected: set[str]) -> None:
    """Return when all of these have come."""
    reader, seen = TopicReader(brokers, "decisions"), set[str]()

    def all_there() -> bool:
        nonlocal seen
        seen |= {decision["id"] for decision in reader.poll(0.2)}
        return expected <= seen

    try:
        wait_for("the last decision", all_there, 600, 0)
    finally:
        reader.close()
