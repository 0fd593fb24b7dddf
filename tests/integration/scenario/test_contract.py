"""The real API server and the real S3 server keep the contract of the simulated ones. Runs both on 127.0.0.1."""

import itertools
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import pytest

from devcluster import s3
from devcluster.apiserver import ApiServer
from devcluster.site import LocalSite
from tests.scenario.contract_api import Api, ApiServerContract
from tests.scenario.contract_store import ObjectStoreContract, Place
from tidegate.app.dry_runs.reference_checks import ReferenceChecks
from tidegate.kube.client import KubeClient
from tidegate.kube.connection import connect
from tidegate.kube.failures import Invalid, NotFound
from tidegate.wiring.metrics import OperatorMetrics
from tidegate_spark.contract.protocol import Storage
from tidegate_testing.kubectl import Kubectl
from tidegate_testing.observations import observe
from tidegate_testing.pod_refusals import WRONG, Wrong
from tidegate_testing.upgrades import edited, old_app

BUCKET = "contract"
_numbers = itertools.count(1)


class TestRealApiServer(ApiServerContract):
    @pytest.fixture
    async def api(self, api_server: ApiServer, api_kubectl: Kubectl) -> AsyncIterator[Api]:
        namespace = f"contract-{next(_numbers)}"
        api_kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        async with KubeClient(await connect(api_server.kubeconfig), OperatorMetrics()) as client:
            yield Api(client, namespace)

    @pytest.mark.parametrize("wrong", WRONG.values(), ids=list(WRONG))
    async def test_a_pod_that_is_wrong_in_itself_is_refused_in_the_words_that_other_tests_take_for_granted(
        self, api: Api, wrong: Wrong
    ) -> None:
        manifest = api.pod_manifest(**wrong.spec)
        manifest["spec"]["containers"][0].update(wrong.container)
        refused = await api.try_out(manifest)
        assert refused == Invalid(wrong.server_message, in_itself=True)

    async def test_what_an_edit_refers_to_is_found_where_it_is_and_missed_where_it_is_not(self, api: Api) -> None:
        """Each kind, in the forms in which the operator asks for it; nothing is made by the question."""
        old = old_app()
        old = msgspec.structs.replace(old, metadata=msgspec.structs.replace(old.metadata, namespace=api.namespace))
        looked_at = observe(edited(old, edit_that_refers(), namespace=api.namespace))
        missing = (await ReferenceChecks(api.client).check(looked_at)).missing
        assert [each.what for each in missing] == [
            "ConfigMap whole",
            "key there of ConfigMap parts",
            "key absent of ConfigMap parts",
            "PersistentVolumeClaim data",
            "Secret tls",
        ]
        assert isinstance(await api.get("Secret", "tls"), NotFound)
        referred: tuple[tuple[str, str, dict[str, Any]], ...] = (
            ("ConfigMap", "whole", {}),
            ("ConfigMap", "parts", {"data": {"there": "text"}}),
            ("PersistentVolumeClaim", "data", {"spec": CLAIM}),
            ("Secret", "tls", {}),
        )
        for kind, name, content in referred:
            manifest = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **content}
            assert isinstance(await api.create(kind, manifest), dict)
        (left,) = (await ReferenceChecks(api.client).check(looked_at)).missing
        assert left.what == "key absent of ConfigMap parts"


CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def edit_that_refers() -> dict[str, Any]:
    """Return a change after which the driver's pod refers to one object of each kind."""
    sources: list[dict[str, Any]] = [
        {"configMap": {"name": "whole"}},
        {"configMap": {"name": "parts", "items": [{"key": key, "path": key} for key in ("there", "absent")]}},
        {"persistentVolumeClaim": {"claimName": "data"}},
        {"secret": {"secretName": "tls"}},
    ]
    volumes = [{"name": f"v{n}", **source} for n, source in enumerate(sources)]
    mounts = [{"name": each["name"], "mountPath": f"/{each['name']}"} for each in volumes]
    container = {"name": "driver", "volumeMounts": mounts}
    return {"driver.podTemplate": {"spec": {"volumes": volumes, "containers": [container]}}}


@pytest.fixture(scope="module")
def site() -> Iterator[LocalSite]:
    with LocalSite() as running:
        s3.up(running)
        s3.ensure_bucket(running, BUCKET)
        yield running


class TestRealObjectStore(ObjectStoreContract):
    @pytest.fixture
    def place(self, site: LocalSite) -> Place:
        client = s3.client(site.s3_endpoint_host, site.s3_keys)
        return Place(client, Storage(f"s3://{BUCKET}/apps/shop/orders-{next(_numbers)}"))
