"""Polls snapshot pods for their progress, and wakes their snapshots. Does I/O."""

from __future__ import annotations

import dataclasses

from tidegate.agent.pods_at_work import PodsAtWork
from tidegate.cache.process_state import PodProgress
from tidegate.engine.resource_key import Key
from tidegate.snapshots.index import SnapshotIndex


class SnapshotPods(PodsAtWork):
    """The pods at work, by the snapshot that each is for."""

    __slots__ = ()

    def _keep(self, key: Key, progress: PodProgress) -> bool:
        snapshots = self._index.of(SnapshotIndex)
        memory = snapshots.memory(key)
        if memory.progress == progress or snapshots.get(key) is None:
            return False
        snapshots.memories[key] = dataclasses.replace(memory, progress=progress)
        return True
