"""The processes of executors and of purge pods. The purge is the runtime's own code."""

import asyncio
from typing import Any

from tests.scenario.api_server import Body
from tests.scenario.cluster import Container, Ended
from tests.scenario.object_store import StoreClient
from tests.scenario.surroundings import Surroundings, config_of
from tidegate_spark.contract.configuration_protocol import ConfigurationChangedError
from tidegate_spark.contract.protocol import Termination, from_json, to_json
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.driver.startup_failure import startup_termination
from tidegate_spark.snapshots.purge import purge
from tidegate_spark.storage import s3_client
from tidegate_spark.storage.s3_client import FaultError


class ExecutorProcess:
    """Runs until it is told to end, or has lost its driver."""

    ready = True

    def __init__(self) -> None:
        self._ended: Ended | None = None

    def start(self, ended: Ended) -> None:
        """Begin."""
        self._ended = ended

    def terminate(self) -> None:
        """End."""
        if self._ended is not None:
            asyncio.get_running_loop().call_later(1.0, self._ended, 143, "Error", "")
            self._ended = None

    def fail(self, code: int, word: str, lines: str) -> None:
        """End by itself, with the kubelet's word for it and the last lines that it wrote."""
        if self._ended is not None:
            self._ended(code, word, lines)
            self._ended = None

    def kill(self) -> None:
        """End without a word."""
        self._ended = None


class RefusingProcess:
    """A driver or a rehearsal that finds another configuration than its own."""

    ready = False

    def __init__(self, pod: Body, error: ConfigurationChangedError) -> None:
        self._words = to_json(from_json(Termination, startup_termination(error, to_json(config_of(pod)))))
        self._ended: Ended | None = None

    def start(self, ended: Ended) -> None:
        """Begin."""
        self._ended = ended
        asyncio.get_running_loop().call_later(1.0, self._end)

    def _end(self) -> None:
        if self._ended is not None:
            self._ended(0, "Completed", self._words)

    def terminate(self) -> None:
        """It ends by itself."""

    def kill(self) -> None:
        """End without a word."""
        self._ended = None


class PurgeProcess:
    """Removes the application's storage."""

    ready = True

    def __init__(self, world: Surroundings, container: Container, pod: Body) -> None:
        self._world, self._config = world, config_of(pod)
        self._client: Any = StoreClient(world.store, lambda: container.node.storeless, self._config.storage.endpoint)
        self._task: asyncio.Task[None] | None = None

    def start(self, ended: Ended) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._live(ended))

    def terminate(self) -> None:
        """A purge ends when it is killed: it can be begun again at any time."""

    def kill(self) -> None:
        """End without a word."""
        assert self._task is not None
        self._task.cancel()

    async def _live(self, ended: Ended) -> None:
        await asyncio.sleep(self._world.rng.uniform(0.2, 3.0))
        reason, message = Reason.COMPLETED, ""
        self._world.purging(self._config)
        try:
            message = purge.purge(self._client, self._config).message
        except FaultError as error:
            reason, message = error.fault.reason, error.fault.message
        except Exception as error:
            fault = s3_client.fault_of(error, self._config.storage, "")
            if fault is None:
                raise
            reason, message = fault.reason, fault.message
        finally:
            self._world.purging(None)
        self._world.trace("purge", f"{self._config.namespace}/{self._config.app}: {reason.value} {message}")
        code = purge.exit_code(reason)
        ended(code, "Completed" if code == 0 else "Error", to_json(Termination(reason, message, self._config.epoch)))
