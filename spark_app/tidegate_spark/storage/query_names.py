"""Notes and finds the name of a query whose checkpoint directory has another name. I/O by the object store's port.

A name that is no plain word gets another directory (:func:`tidegate_spark.contract.object_paths.checkpoint_directory`).
The driver notes the name when it starts the query, for readers that have only the checkpoint.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

from tidegate_spark.contract.object_paths import NAMES_PREFIX, checkpoint_directory, directory_of_query
from tidegate_spark.storage.app_objects import AppObjects

log = logging.getLogger("tidegate")
_MADE = re.compile(r".+-[0-9a-f]{8}")


def note(objects: AppObjects, name: str) -> None:
    """Note a query's name, if its directory has another one; raises what the store's client raises."""
    directory = checkpoint_directory(name)
    if directory != name:
        objects.store.put(objects.key(NAMES_PREFIX, directory), name.encode())


def note_from(connect: Callable[[], AppObjects], name: str) -> None:
    """Note a query's name as :func:`note` does; what fails is done by the next start."""
    if checkpoint_directory(name) == name:
        return
    try:
        note(connect(), name)
    except Exception as error:  # whatever it is: the query runs
        log.warning("the name of query %r is not noted: %s", name, error)


def of_directory(objects: AppObjects, directory: str) -> str:
    """Return the query's name, the directory's if nothing else is known, without what distinguishes starts.

    Raises:
        Exception: what the store's client raises.
    """
    directory = directory_of_query(directory)
    found = objects.store.get(objects.key(NAMES_PREFIX, directory)) if _MADE.fullmatch(directory) else None
    name = found[0].decode("utf-8", "replace") if found is not None else directory
    # Anybody may have put an object there.
    return name if checkpoint_directory(name) == directory else directory
