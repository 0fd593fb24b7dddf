"""The state of a plan while it is carried out, and what this process remembers of it. No I/O."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from tidegate.api.streaming_app import StreamingApp
from tidegate.cache.index import Index
from tidegate.cache.known_apps import KnownApp
from tidegate.cache.process_state import Refusal
from tidegate.engine.resource_key import Key
from tidegate_spark.contract.reasons import Reason


@dataclass(slots=True)
class PlanRun:
    """One plan being carried out; ``app`` moves on with each of our own writes to it."""

    index: Index
    app: StreamingApp
    now: float
    spec_hash: str = ""
    """Of the version that the plan is about; empty for that of the spec."""
    launched: bool = False
    """The driver pod has been created."""

    @property
    def key(self) -> Key:
        """Namespace and name of the application."""
        return self.app.metadata.namespace, self.app.metadata.name

    def remember(self, **changes: Any) -> None:
        """Remember something of the application, if there still is one."""
        if self.index.app(self.key) is not None:
            self.index.memories[self.key] = dataclasses.replace(self.index.memory(self.key), **changes)

    def refuse(  # noqa: PLR0913 - what there is to be said of it
        self,
        pod_name: str,
        reason: Reason,
        message: str,
        *,
        recorded: bool,
        server_message: str = "",
        holds_end: bool = False,
        at_once: bool = False,
    ) -> None:
        """Remember that a pod cannot be; the fields are those of a refusal, and ``at_once`` has it tried again so."""
        entry, known = self.index.app(self.key), self.index.memory(self.key).refusal
        if entry is None:
            return
        epoch = self.app.status.epoch
        again = known is not None and (known.pod_name, known.epoch) == (pod_name, epoch)
        attempts = known.attempts + 1 if known is not None and again else 1
        refusal = Refusal(
            pod_name=pod_name,
            spec_hash=self.spec_hash or (entry.spec_hash if isinstance(entry, KnownApp) else ""),
            epoch=epoch,
            reason=reason,
            message=message,
            at=self.now,
            attempts=0 if at_once else attempts,
            recorded=recorded,
            server_message=server_message,
            holds_end=holds_end,
        )
        self.remember(refusal=refusal)
