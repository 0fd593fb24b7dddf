"""The simulated servers keep the contract that tests/integration/scenario holds the real ones to. No I/O."""

import itertools
import random
import time

import pytest

from tests.scenario.api_server import ApiServer
from tests.scenario.contract_api import Api, ApiServerContract
from tests.scenario.contract_store import ObjectStoreContract, Place
from tests.scenario.faults import FaultInjection
from tests.scenario.object_store import ObjectStore, StoreClient
from tests.scenario.operators import OperatorProcess, World
from tidegate_spark.contract.protocol import Storage

_numbers = itertools.count(1)


class Calm(World):
    """A world in which there is only an API server, and requests are answered at once."""

    def __init__(self, namespace: str) -> None:
        self.api = ApiServer(time.time, {namespace})
        self.faults = FaultInjection(random.Random(0), slow=0.0, longest_lag=0.0)

    def now(self) -> float:
        return time.time()

    def grants(self, method: str, path: str) -> bool:
        return True  # who asks here may do anything, as in the contract of the real server

    def leads(self, process: OperatorProcess) -> bool:
        return True


class TestSimulatedApiServer(ApiServerContract):
    @pytest.fixture
    async def api(self) -> Api:
        namespace = f"contract-{next(_numbers)}"
        return Api(OperatorProcess(Calm(namespace), "operator").client, namespace)


class TestSimulatedObjectStore(ObjectStoreContract):
    @pytest.fixture
    def place(self) -> Place:
        return Place(StoreClient(ObjectStore()), Storage("s3://bucket/apps/shop/orders"))
