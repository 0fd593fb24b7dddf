"""Polls the pods that repartition state for their progress, as snapshot pods are polled. Does I/O."""

from __future__ import annotations

import dataclasses

from tidegate.agent.pods_at_work import PodsAtWork
from tidegate.cache.known_apps import KnownApp
from tidegate.cache.process_state import PodProgress
from tidegate.engine.resource_key import Key


class RepartitionPods(PodsAtWork):
    """The pods at work, by the application that each is for."""

    __slots__ = ()

    def _keep(self, key: Key, progress: PodProgress) -> bool:
        memory = self._index.memory(key)
        if memory.repartitioning == progress or not isinstance(self._index.app(key), KnownApp):
            return False
        self._index.memories[key] = dataclasses.replace(memory, repartitioning=progress)
        return True
