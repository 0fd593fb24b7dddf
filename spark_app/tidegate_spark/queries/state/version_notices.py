"""Gives notices about a version once, at its first launch. I/O by the store's port.

Which were given is noted in the storage, because pods and statuses may be gone by the next launch.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from tidegate_spark.contract.json_form import from_stored, to_json
from tidegate_spark.contract.protocol import DriverConfig
from tidegate_spark.storage.app_objects import AppObjects

NOTES_FILE = "notices.json"
MOST_KEPT = 200

log = logging.getLogger("tidegate")


@dataclass(frozen=True)
class Notes:
    """Which notices a version has had."""

    specHash: str  # noqa: N815 - its name in storage
    """Of the version that was launched last."""
    told: dict[str, int] = field(default_factory=dict)
    """Digest of a notice -> epoch of the launch that gave it first."""


class VersionNotices:
    """Gives the notices of one launch."""

    def __init__(
        self, config: DriverConfig, connect: Callable[[], AppObjects], notice: Callable[[str, str, bool], None]
    ) -> None:
        """Give them by ``notice``; ``connect`` reaches the application's storage."""
        self._config, self._connect, self._notice = config, connect, notice
        self._lock = threading.Lock()

    def publish(self, reason: str, message: str, warning: bool) -> None:
        """Give a notice, unless an earlier launch of the version did; in doubt it is given."""
        try:
            with self._lock:
                known = self._is_known(hashlib.sha256(f"{reason} {message}".encode()).hexdigest()[:16])
        except Exception as error:  # whatever the store's client raises, or what is there
            log.warning("whether this version has had a notice is not known: %s", error)
            known = False
        if not known:
            self._notice(reason, message, warning)

    def _is_known(self, digest: str) -> bool:
        spec, epoch = self._config.spec_hash, self._config.epoch
        if not spec:
            return False
        objects = self._connect()
        key = objects.key(NOTES_FILE)
        found = objects.store.get(key)
        notes = from_stored(Notes, found[0]) if found is not None else Notes(spec)
        reported = notes.told if notes.specHash == spec else {}
        # A process that is started again gives it again: the previous one may have ended before anybody read it.
        first = reported.get(digest)
        if first is None:
            kept = dict(list(reported.items())[-MOST_KEPT + 1 :])
            objects.store.put(key, to_json(Notes(spec, {**kept, digest: epoch})).encode())
        return first is not None and first < epoch
