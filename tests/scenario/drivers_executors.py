"""The executors of one driver process, kept as Spark keeps them: ended ones are removed, new ones have new numbers."""

from typing import Protocol

from tests.scenario.api_server import PODS, ApiServer, Body
from tests.scenario.cluster import Container
from tidegate_spark.contract.protocol import DriverConfig
from tidegate_spark.process.spark.sparkconf import executor_template


class Surroundings(Protocol):
    """What they need of the world around them."""

    api: ApiServer

    def driver_may(self, name: str) -> bool:
        """Return whether the driver of an application has the rights it needs."""

    def find_container(self, uid: str) -> Container | None:
        """Return the container of the pod with this uid."""


class DriversExecutors:
    """Those of one driver process."""

    ended, held_until, short_since = 0, 0.0, 0.0
    """As the report has them; only those that pace themselves tell (tests/scenario/paced_executors.py)."""

    def can_work(self) -> bool:
        """Return whether a batch can be run: here it needs no executors."""
        return True

    def __init__(self, world: Surroundings, container: Container, config: DriverConfig) -> None:
        self.wanted = config.executor.instances
        self._world, self._container, self._config = world, container, config
        self._number = 0
        self._prefix = f"{config.executor.pod_name_prefix}-exec-"

    def running(self) -> int:
        """Return how many run."""
        return sum(1 for each in self._all() if each["status"].get("phase") == "Running")

    def keep(self) -> None:
        """Have as many as wanted."""
        api, there = self._world.api, self._all()
        ended = [body for body in there if body["status"].get("phase") in ("Failed", "Succeeded")]
        alive = [body for body in there if body not in ended and "deletionTimestamp" not in body["metadata"]]
        surplus = alive[self.wanted :]
        for body in surplus:
            self._end(body)
        if not self._may_change_pods():
            return
        for body in [*ended, *surplus]:
            api.delete(self._path(body["metadata"]["name"]))
        for _ in range(self.wanted - len(alive)):
            self._number += 1
            name = f"{self._prefix}{self._number}"
            if api.find(self._path(name)) is None:
                api.create(self._path(name).rpartition("/")[0], self._manifest(name))

    def remove(self) -> None:
        """Have none any more."""
        if self._may_change_pods():
            for body in self._all():
                self._world.api.delete(self._path(body["metadata"]["name"]), grace=5)
        self.abandon()

    def abandon(self) -> None:
        """The driver is gone: they notice and end."""
        for body in self._all():
            self._end(body)

    def _all(self) -> list[Body]:
        return [body for body in self._world.api.all(PODS) if self._is_mine(body["metadata"])]

    def _is_mine(self, metadata: Body) -> bool:
        """Return whether a pod is one of this process: names are anybody's to choose."""
        owners = {owner["uid"] for owner in metadata.get("ownerReferences", ())}
        return metadata["name"].startswith(self._prefix) and self._container.uid in owners

    def _path(self, name: str) -> str:
        return f"/api/v1/namespaces/{self._config.namespace}/pods/{name}"

    def _may_change_pods(self) -> bool:
        return self._container.node.reachable and self._world.driver_may(self._config.app)

    def _end(self, body: Body) -> None:
        container = self._world.find_container(body["metadata"]["uid"])
        if container is not None and container.process is not None:
            container.process.terminate()

    def _manifest(self, name: str) -> Body:
        metadata = executor_template(self._config, self._container.uid)["metadata"]
        metadata |= {"name": name, "namespace": self._config.namespace}
        container = {"name": "executor", "image": self._config.executor.image}
        return {"metadata": metadata, "spec": {"restartPolicy": "Never", "containers": [container]}}
