"""etcd is restored from a backup under an operator that runs. An etcd and an API server of its own."""

import asyncio
import shutil
from collections.abc import Iterator

import pytest

from devcluster.apiclient import ApiClient
from devcluster.apiserver import ApiServer
from devcluster.control import PATIENCE
from tidegate.cache.app_watch import watch_apps
from tidegate.cache.index import Index
from tidegate.engine.resource_key import Key
from tidegate.kube.client import KubeClient
from tidegate.kube.connection import connect
from tidegate.kube.history import RestoredError
from tidegate.wiring.metrics import OperatorMetrics
from tidegate_testing.apps import streaming_app
from tidegate_testing.crd import install_crds
from tidegate_testing.kubectl import Kubectl, Manifest

NAMESPACE = "default"
EDITS = 30


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as running:
        install_crds(Kubectl(running.kubectl, running.kubeconfig))
        yield running


def app(name: str) -> Manifest:
    storage = {"uri": "s3://bucket/apps"}
    return streaming_app(name, NAMESPACE, image="x", storage=storage, main="local:///main.py")


def stop(server: ApiServer) -> None:
    server.control.stop("kube-apiserver")
    server.control.stop("etcd")


def start(server: ApiServer) -> None:
    server.control.start_again("etcd")
    server.control.start_again("kube-apiserver")
    server.control.until("kube-apiserver", ApiClient(server.kubeconfig).ready, timeout=PATIENCE)


def back_up(server: ApiServer) -> None:
    stop(server)
    shutil.copytree(server.folder / "etcd", server.folder / "backup")
    start(server)


def restore(server: ApiServer) -> None:
    stop(server)
    shutil.rmtree(server.folder / "etcd")
    shutil.copytree(server.folder / "backup", server.folder / "etcd")
    start(server)


def edit(kubectl: Kubectl) -> None:
    kubectl.apply(app("later"))
    for number in range(EDITS):
        kubectl.patch("streamingapp", "orders", NAMESPACE, {"spec": {"sparkConf": {"spark.x": str(number)}}})


@pytest.mark.long
async def test_an_operator_notices_that_etcd_was_restored_and_the_next_process_knows_what_is_there(
    server: ApiServer,
) -> None:
    kubectl = Kubectl(server.kubectl, server.kubeconfig)
    await asyncio.to_thread(kubectl.apply, app("orders"))
    await asyncio.to_thread(back_up, server)
    connection = await connect(server.kubeconfig)
    async with KubeClient(connection, OperatorMetrics()) as client, asyncio.timeout(300):

        def begin() -> tuple[Index, asyncio.Queue[Key], asyncio.Task[None]]:
            index, woken = Index(), asyncio.Queue[Key]()
            index.replace_pods([], "", "1")
            watch = watch_apps(client, OperatorMetrics(), index, woken.put_nowait, "")
            return index, woken, asyncio.create_task(watch)

        index, woken, watch = begin()
        await index.initial_sync.complete.wait()
        await asyncio.to_thread(edit, kubectl)
        edited = stored(kubectl)
        while known_to(index) != edited:
            await woken.get()
        await asyncio.to_thread(restore, server)
        with pytest.raises(RestoredError, match="restored from an older backup"):
            await asyncio.wait_for(watch, 60)
        index, _, watch = begin()
        await index.initial_sync.complete.wait()
        assert known_to(index) == stored(kubectl)
        assert [name for name, _ in known_to(index)] == ["orders"]
        watch.cancel()


def stored(kubectl: Kubectl) -> set[tuple[str, str]]:
    """Return each application's name and version, as the API server says."""
    found = kubectl.list("streamingapp", NAMESPACE)
    return {(each["metadata"]["name"], each["metadata"]["resourceVersion"]) for each in found}


def known_to(index: Index) -> set[tuple[str, str]]:
    """Return the same as the operator knows it."""
    keys = index.keys()
    known = [index.app(key) for key in keys]
    return {(each.metadata.name, each.metadata.resource_version) for each in known if each is not None}
