"""What a real API server answers to the watches that the operator makes. An API server without nodes."""

import asyncio

from devcluster.apiserver import ApiServer
from tidegate.kube.client import KubeClient
from tidegate.kube.connection import connect
from tidegate.kube.paths import collection
from tidegate.kube.watch import Changed, Listed, MetadataOnly, Removed, Watch
from tidegate.wiring.metrics import OperatorMetrics
from tidegate_testing.apps import streaming_app
from tidegate_testing.kubectl import Kubectl


async def test_the_metadata_alone_tells_of_an_applications_end(
    api_server: ApiServer, api_kubectl: Kubectl, namespace: str
) -> None:
    storage = {"uri": "s3://bucket/apps"}
    api_kubectl.apply(streaming_app("orders", namespace, image="x", storage=storage, main="local:///main.py"))
    uid = (api_kubectl.get("streamingapp", "orders", namespace) or {})["metadata"]["uid"]
    connection = await connect(api_server.kubeconfig)
    async with KubeClient(connection, OperatorMetrics()) as client, asyncio.timeout(60):
        changes = Watch(client, collection("StreamingApp", namespace), "", MetadataOnly).changes()
        listed = await anext(changes)
        assert isinstance(listed, Listed)
        assert ([item.metadata.uid for item in listed.items], listed.version.isdecimal()) == ([uid], True)
        change = {"spec": {"sparkConf": {"spark.x": "y"}}}
        await asyncio.to_thread(api_kubectl.patch, "streamingapp", "orders", namespace, change)
        changed = await anext(changes)
        assert isinstance(changed, Changed)
        assert changed.item.metadata.name == "orders"
        await asyncio.to_thread(api_kubectl.delete, "streamingapp", "orders", namespace)
        removed = await anext(changes)
        assert isinstance(removed, Removed)
        assert removed.item.metadata.uid == uid
