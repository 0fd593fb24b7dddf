"""What the processes in pods need of the world around them, and what they are configured with."""

import base64
import functools
import json
import random
from typing import Protocol

from tests.scenario import drivers_executors
from tests.scenario.api_server import Body
from tests.scenario.cluster import Container
from tests.scenario.object_store import ObjectStore
from tidegate_spark.contract import configuration_protocol
from tidegate_spark.contract.protocol import CONFIG_VARIABLE, DriverConfig, RestartSettings, from_json
from tidegate_spark.storage.claim.fence import Holder


class Ledger(Protocol):
    """Is told what happens to storage."""

    def taken(self, prefix: str, holder: Holder, rules: RestartSettings) -> None:
        """A process took the fence."""

    def begun(self, prefix: str, holder: Holder) -> None:
        """A process begins a batch."""

    def committed(self, prefix: str, holder: Holder, batch: int) -> None:
        """The batch that it began is committed."""

    def filled(self, prefix: str, holder: Holder, of_lineage: int, batch: int) -> None:
        """The lineage of a process starts from what another one was after a batch."""

    def started_elsewhere(self, uid: str, holder: Holder, of_lineage: int, offsets: str) -> None:
        """The lineage of a process starts with what another one was, and with other offsets."""

    def noted(self, prefix: str, holder: Holder, of_lineage: int, batch: int) -> None:
        """A process writes down after which batch of a lineage an upgrade can be rolled back to."""

    def repartitioned(self, prefix: str, holder: Holder, of_lineage: int, batch: int, partitions: int) -> None:
        """The state of another lineage was repartitioned into that of a process, in a batch of its own."""

    def cleared(self, prefix: str, lineage: int) -> None:
        """What a repartition made in a lineage is removed, for a process that is to start with nothing there."""

    def not_whole(self, prefix: str, holder: Holder) -> None:
        """A driver begins on a lineage that somebody began to make and nobody called whole."""

    def ended(self, holder: Holder, rules: RestartSettings, *, counted: bool, healthy: bool) -> None:
        """A process ended: in a way that counts against the application's budget, or after it had been healthy."""


class Surroundings(drivers_executors.Surroundings, Protocol):
    """What processes need of the world around them."""

    store: ObjectStore
    ledger: Ledger
    rng: random.Random
    input: bool
    """There is something to read, so that there are batches."""

    def now(self) -> float:
        """Return the time, in seconds since the epoch."""

    def is_broken(self, uid: str, spec_hash: str) -> bool:
        """Return whether an application fails with this spec."""

    def count(self, what: str) -> None:
        """Count something that should happen now and then, or the schedules test less than they seem to."""

    def unhealthy(self, container: Container) -> None:
        """The liveness probe fails from now on."""

    def entered(self, prefix: str, holder: Holder) -> None:
        """A driver took the fence."""

    def purging(self, config: DriverConfig | None) -> None:
        """A purge begins, or has ended (None)."""

    def disposing(self, config: DriverConfig, snapshot: str) -> None:
        """A driver is about to remove a snapshot, because it was told to."""

    def logged(self, config: DriverConfig, before: list[str], message: str) -> None:
        """A driver has appended a message to its log, after these."""

    def changed(self, container: Container) -> None:
        """A process is ready now, or not any more."""

    def trace(self, who: str, text: str) -> None:
        """Note what happened."""


def config_of(pod: Body) -> DriverConfig:
    """Return the configuration that the operator gave a pod, as far as it is in the pod itself."""
    return _read_config(_text_of(pod))


def is_copy(pod: Body) -> bool:
    """Return whether a pod is nobody's, and our program runs in it all the same."""
    env = pod["spec"]["containers"][0].get("env", ())
    return not pod["metadata"].get("ownerReferences") and any(each["name"] == CONFIG_VARIABLE for each in env)


def given_config(container: Container, pod: Body) -> DriverConfig:
    """Return the whole configuration of a process, as the runtime reads it.

    Raises:
        ConfigurationChangedError: what is mounted is not what the pod was launched with.
    """
    text = _text_of(pod)
    rest = configuration_protocol.rest_of(text)
    if rest is None:
        return _read_config(text)
    return configuration_protocol.put_together(text, content_of((container.mounted or {})[rest.secret]))


def content_of(secret: Body) -> bytes:
    """Return what is in the Secret of a configuration."""
    return base64.b64decode(secret["data"][configuration_protocol.REST_KEY])


def _text_of(pod: Body) -> str:
    env = pod["spec"]["containers"][0]["env"]
    return next(each["value"] for each in env if each["name"] == CONFIG_VARIABLE)  # type: ignore[no-any-return] # text


@functools.lru_cache(64)
def _read_config(text: str) -> DriverConfig:
    # Each start of a container reads it, and so does whoever makes its executors.
    if configuration_protocol.rest_of(text) is not None:
        text = json.dumps({**json.loads(text), "main": ""})
    return from_json(DriverConfig, text)
