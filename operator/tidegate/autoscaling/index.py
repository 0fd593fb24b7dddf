"""The autoscaler's samples and results, by application. In memory; no I/O."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tidegate.api.streaming_app import StreamingApp
from tidegate.autoscaling.algorithm.past import Past
from tidegate.autoscaling.algorithm.recommend import Advice
from tidegate.autoscaling.algorithm.samples import History
from tidegate.cache.kinds.feature_index import FeatureIndex
from tidegate.engine.resource_key import Key


@dataclass(frozen=True, slots=True)
class Watched:
    """One application; all of it may be lost, and the past starts with what is in the status then."""

    app_uid: str
    history: History
    past: Past
    advice: Advice


class AutoscalingIndex(FeatureIndex):
    """Applications that the autoscaler looks at."""

    def __init__(self, namespaces: Collection[str] = ("",)) -> None:
        """Start with none, whatever the namespaces."""
        self._watched: dict[Key, Watched] = {}

    def put(self, key: Key, watched: Watched) -> None:
        """Keep what a look found."""
        self._watched[key] = watched

    def get(self, app: StreamingApp) -> Watched | None:
        """Return what the last look at this very application found."""
        watched = self._watched.get((app.metadata.namespace, app.metadata.name))
        return watched if watched is not None and watched.app_uid == app.metadata.uid else None

    def advice(self, app: StreamingApp) -> Advice | None:
        """Return the newest advice."""
        watched = self.get(app)
        return watched.advice if watched is not None else None

    def forget_app(self, app: Key) -> None:
        """Keep nothing of an application."""
        self._watched.pop(app, None)
