"""What a real API server answers to the watches that the operator makes. An API server without nodes."""

import asyncio
from collections.abc import Callable

from devcluster.apiserver import ApiServer
from tidegate.cache.app_watch import watch_apps
from tidegate.cache.index import Index
from tidegate.cache.known_apps import KnownApp
from tidegate.engine.resource_key import Key
from tidegate.kube.client import KubeClient
from tidegate.kube.connection import connect
from tidegate.wiring.metrics import OperatorMetrics
from tidegate_testing.apps import streaming_app
from tidegate_testing.kubectl import Kubectl


async def test_an_application_comes_whole_with_its_changes_and_its_end(
    api_server: ApiServer, api_kubectl: Kubectl, namespace: str
) -> None:
    key, index = (namespace, "orders"), Index([namespace])
    index.replace_pods([], namespace, "1")
    storage = {"uri": "s3://bucket/apps"}
    api_kubectl.apply(streaming_app("orders", namespace, image="x", storage=storage, main="local:///main.py"))
    connection = await connect(api_server.kubeconfig)

    woken: asyncio.Queue[Key] = asyncio.Queue()

    async def until(true: Callable[[KnownApp | None], bool]) -> None:
        while not true(known if isinstance(known := index.app(key), KnownApp) else None):
            await woken.get()

    async with KubeClient(connection, OperatorMetrics()) as client, asyncio.timeout(60):
        watch = asyncio.create_task(watch_apps(client, OperatorMetrics(), index, woken.put_nowait, namespace))
        await index.initial_sync.complete.wait()
        await until(lambda known: known is not None and known.app.spec.application.image == "x")
        change = {"spec": {"sparkConf": {"spark.x": "y"}}}
        await asyncio.to_thread(api_kubectl.patch, "streamingapp", "orders", namespace, change)
        await until(lambda known: known is not None and known.app.spec.spark_conf == {"spark.x": "y"})
        await asyncio.to_thread(api_kubectl.delete, "streamingapp", "orders", namespace)
        await until(lambda known: known is None)
        watch.cancel()
