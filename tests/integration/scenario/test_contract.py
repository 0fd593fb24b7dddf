"""The real API server and the real S3 server keep the contract of the simulated ones. Runs both on 127.0.0.1."""

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest

from devcluster import s3
from devcluster.apiserver import ApiServer
from devcluster.site import LocalSite
from tests.scenario.contract_api import Api, ApiServerContract
from tests.scenario.contract_store import ObjectStoreContract, Place
from tidegate.kube.client import KubeClient
from tidegate.kube.connection import connect
from tidegate.kube.failures import Invalid
from tidegate.metrics.figures import Figures
from tidegate_spark.protocol import Storage
from tidegate_testing.kubectl import Kubectl
from tidegate_testing.pod_refusals import WRONG, Wrong

BUCKET = "contract"
_numbers = itertools.count(1)


class TestRealApiServer(ApiServerContract):
    @pytest.fixture
    async def api(self, api_server: ApiServer, api_kubectl: Kubectl) -> AsyncIterator[Api]:
        namespace = f"contract-{next(_numbers)}"
        api_kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        async with KubeClient(await connect(api_server.kubeconfig), Figures()) as client:
            yield Api(client, namespace)

    @pytest.mark.parametrize("wrong", WRONG.values(), ids=list(WRONG))
    async def test_a_pod_that_is_wrong_in_itself_is_refused_in_the_words_that_other_tests_take_for_granted(
        self, api: Api, wrong: Wrong
    ) -> None:
        manifest = api.pod_manifest(**wrong.spec)
        manifest["spec"]["containers"][0].update(wrong.container)
        refused = await api.try_out(manifest)
        assert refused == Invalid(wrong.words, in_itself=True)


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
