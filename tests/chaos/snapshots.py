"""Whether every snapshot is whole at the end: what its manifest names is in the bucket. Reads files."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DAMAGED = "SnapshotDamaged"


def damaged(snapshots: Sequence[Mapping[str, Any]], folder: Path) -> list[str]:
    """Return a sentence for each StreamSnapshot that is Ready and not whole, or was found to be damaged.

    Args:
        snapshots: as the API server has them.
        folder: the application's, where the S3 server keeps its objects.
    """
    found = []
    for snapshot in snapshots:
        name, status = snapshot["metadata"]["name"], snapshot.get("status", {})
        if status.get("phase") == "Ready":
            missing = _missing(folder, f"snapshots/{status['snapshotId']}/manifest.json")
            if missing:
                found.append(f"snapshot {name} is Ready and lacks {len(missing)} files, such as {missing[0]}")
        for condition in status.get("conditions", ()):
            if condition["reason"] == DAMAGED and condition["type"] == "Stalled":
                found.append(f"snapshot {name} was damaged: {condition['message']}")
    return found


def _missing(folder: Path, manifest: str) -> list[str]:
    try:
        files = json.loads((folder / manifest).read_bytes())["files"]
    except FileNotFoundError:
        return [manifest]
    keys = {str(file["key"]): int(file["size"]) for file in files}
    return [key for key, size in keys.items() if not (folder / key).is_file() or (folder / key).stat().st_size != size]
