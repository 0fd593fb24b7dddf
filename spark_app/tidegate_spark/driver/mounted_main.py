"""Keeps the text of a program from a ConfigMap for the life of the pod. Does I/O.

The kubelet updates the mounted file when the ConfigMap is edited; a restarted container would otherwise run another
text than the version that was launched.
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

from tidegate_spark.contract.protocol import MAIN_DIRECTORY, MOUNTED_MAIN_DIRECTORY

log = logging.getLogger("tidegate")


def kept_main(reference: str, mounted: str = MOUNTED_MAIN_DIRECTORY, directory: str = MAIN_DIRECTORY) -> str:
    """Return the reference of the program to run: this pod's copy of a mounted one, any other unchanged.

    The first container of the pod makes the copy.

    Args:
        reference: ``main`` of the configuration.
        mounted: where the ConfigMap is mounted.
        directory: where the copy is; lives as long as the pod.

    Raises:
        OSError: the copy cannot be written.
    """
    source = Path(reference.removeprefix("local://"))
    if not reference.startswith("local://") or source.parent != Path(mounted):
        return reference
    copy = Path(directory) / source.name
    if not copy.exists():
        if not source.is_file():
            return reference
        # Whole or not at all: the process may be killed while it writes.
        partial = copy.with_name(f"{copy.name}.partial")
        partial.write_bytes(source.read_bytes())
        partial.replace(copy)
    digest = hashlib.sha256(copy.read_bytes()).hexdigest()
    log.info("start: the program is %s, SHA-256 %s", copy, digest, extra={"action": "start"})
    return f"local://{copy}"
