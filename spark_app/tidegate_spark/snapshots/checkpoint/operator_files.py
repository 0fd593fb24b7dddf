"""The files of a checkpoint that describe its stateful operators. Pure.

Spark's OperatorStateMetadata: ``state/<operator>/_metadata/metadata`` (V1, written once) or
``state/<operator>/_metadata/v2/<batch>`` (V2, one for each start of the query; OperatorStateMetadataV2FileManager
purges old ones). The schema of the state is in ``state/<operator>/0/[<store>/]_metadata/schema``
(StateSchemaCompatibilityChecker) or, for V2, in files below ``state/<operator>/_stateSchema`` that the metadata names.

Those names are absolute, so ``relocated`` rewrites the metadata of a copy.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from tidegate_spark.contract.object_paths import is_number
from tidegate_spark.snapshots.checkpoint import state_schema
from tidegate_spark.snapshots.checkpoint.checkpoint import (
    METADATA_DIRECTORY,
    Checkpoint,
    Needed,
    UnreadableCheckpointError,
    parsed,
    versioned,
)
from tidegate_spark.snapshots.checkpoint.state_schema import Family

STATE = "state"
DEFAULT_STORE = "default"
_SCHEMAS = "_stateSchema"
_WITH_PLACES = re.compile(r"state/\d+/_metadata/v2/\d+", re.ASCII)
_SCHEMA_PLACE = re.compile(r".*/(state/\d+/_stateSchema/[^/]+/[^/]+)", re.ASCII | re.DOTALL)
_NEWEST = 2
_ONE_PARTITION = "globalLimit"
_AGGREGATION = "stateStoreSave"
_SESSIONS = "sessionWindowStateStoreSaveExec"
AGGREGATIONS = frozenset({_AGGREGATION, _SESSIONS})
"""Names of operators whose state has the functions of an aggregation as its values' columns."""


@dataclass(frozen=True)
class Operator:
    """A stateful operator of a query."""

    number: int
    name: str
    """Spark's short name of it, for example ``stateStoreSave`` for an aggregation."""
    stores: tuple[str, ...]
    """The state stores of each partition; most operators have one, called ``default``."""
    partitions: int
    """With state; one for an operator that gets all rows at one place."""
    one_place: bool = False
    """It is one that gets all rows at one place."""


@dataclass(frozen=True)
class Described:
    """An operator as its metadata describes it, and the files for that."""

    number: int
    name: str
    stores: tuple[str, ...]
    needed: tuple[Needed, ...]


def store_directory(operator: int, partition: int, store: str) -> str:
    """Return where a state store is, relative to the checkpoint's root; StateStoreId of Spark."""
    directory = f"{STATE}/{operator}/{partition}"
    return directory if store == DEFAULT_STORE else f"{directory}/{store}"


def operators(checkpoint: Checkpoint) -> list[int]:
    """Return the numbers of the operators that have a directory.

    Raises:
        UnreadableCheckpointError: something else is beside them.
    """
    for name in checkpoint.files(STATE):
        raise UnreadableCheckpointError(f"{STATE}/{name}", "is no directory of a stateful operator")
    for name in checkpoint.directories(STATE):
        if not is_number(name):
            raise UnreadableCheckpointError(f"{STATE}/{name}", "is no directory of a stateful operator")
    return sorted(int(name) for name in checkpoint.directories(STATE))


def partitions_with_files(checkpoint: Checkpoint, operator: int) -> list[int]:
    """Return the partitions of an operator that have a directory.

    Raises:
        UnreadableCheckpointError: something else is beside them.
    """
    directory = f"{STATE}/{operator}"
    for name in checkpoint.files(directory):
        raise UnreadableCheckpointError(f"{directory}/{name}", "is no directory of a partition")
    names = [name for name in checkpoint.directories(directory) if name not in (METADATA_DIRECTORY, _SCHEMAS)]
    for name in names:
        if not is_number(name):
            raise UnreadableCheckpointError(f"{directory}/{name}", "is no directory of a partition")
    return sorted(int(name) for name in names)


def describe(checkpoint: Checkpoint, operator: int, batch: int) -> Described:
    """Return the operator as it was in ``batch``.

    Raises:
        MissingFileError: its metadata of that time is gone.
        UnreadableCheckpointError: there is none at all (Spark before 3.5 wrote none), or it is not understood.
    """
    directory = f"{STATE}/{operator}/{METADATA_DIRECTORY}"
    batches = checkpoint.numbers(f"{directory}/v2")
    if batches:
        path = f"{directory}/v2/{max((each for each in batches if each <= batch), default=batch)}"
    else:
        path = f"{directory}/metadata"
        if path not in checkpoint:
            raise UnreadableCheckpointError(path, "is missing: what the operator is and has is not known")
    version, rest = versioned(path, checkpoint.read_text(path, f"it describes the operator in batch {batch}"), _NEWEST)
    if version != (2 if batches else 1):
        raise UnreadableCheckpointError(path, f"has version {version}, which belongs elsewhere")
    metadata = parsed(path, rest)
    name, stores = _names(path, metadata, operator)
    named = _named_schemas(checkpoint, path, metadata) if batches else ()
    fixed = _fixed_schemas(checkpoint, operator, stores, required=not batches)
    return Described(operator, name, stores, (checkpoint.need(path, ""), *named, *fixed))


def single_partition(checkpoint: Checkpoint, operator: Described) -> bool:
    """Return whether the operator gets all rows at one place, so that only its first partition has state.

    That is what Spark's StreamingGlobalLimitExec asks for and StateStoreSaveExec without grouping keys.
    """
    if operator.name == _ONE_PARTITION:
        return True
    path = f"{store_directory(operator.number, 0, DEFAULT_STORE)}/{METADATA_DIRECTORY}/schema"
    if operator.name != _AGGREGATION or path not in checkpoint:
        return False
    return not state_schema.key_columns(path, checkpoint.read(path, "it is the schema of the state"))


class Files(Protocol):
    """Files of a checkpoint that are read one by one, without a listing of all of it."""

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, None if it is not there."""

    def names(self, directory: str) -> list[str]:
        """Return the names of the files in a directory, none if it is not there."""


@dataclass(frozen=True)
class Columns:
    """What the state of an operator is made of."""

    name: str
    """As in :class:`Operator`."""
    families: dict[tuple[str, str], Family]
    """By state store and column family."""


def columns(files: Files, operator: int) -> Columns | None:
    """Return the columns of an operator's state as the newest metadata has them, None if there is no such operator.

    Raises:
        UnreadableCheckpointError: its metadata or a schema is not understood.
        Exception: what reading raises.
    """
    directory = f"{STATE}/{operator}/{METADATA_DIRECTORY}"
    path = f"{directory}/metadata"
    body = files.read(path)
    if body is None:
        batches = [int(name) for name in files.names(f"{directory}/v2") if is_number(name)]
        if not batches:
            return None
        path = f"{directory}/v2/{max(batches)}"
        body = files.read(path)
    if body is None:
        return None
    _, rest = versioned(path, body.decode("utf-8"), _NEWEST)
    metadata = parsed(path, rest)
    name, _ = _names(path, metadata, operator)
    found: dict[tuple[str, str], Family] = {}
    for store in _stores(path, metadata):
        schema = _newest_schema(path, store, operator)
        content = files.read(schema)
        for family, of in state_schema.families(schema, content).items() if content is not None else ():
            found[store["storeName"], family] = of
    return Columns(name, found)


def names_its_place(path: str) -> bool:
    """Return whether the file ``path`` of a checkpoint contains its own place and is to be ``relocated`` in a copy."""
    return _WITH_PLACES.fullmatch(path) is not None


def relocated(path: str, body: bytes, root: str) -> bytes:
    """Return the content of such a file for a copy of the checkpoint.

    Args:
        path: of the file, relative to the checkpoint's root.
        body: its content.
        root: of the copy, as Spark gets it, with the scheme.

    Raises:
        UnreadableCheckpointError: it is not understood.
    """
    version, rest = versioned(path, body.decode("utf-8"), _NEWEST)
    metadata = parsed(path, rest)
    for store in _stores(path, metadata):
        places = [_schema_path(path, place) for place in _places(path, store)]
        store["stateSchemaFilePaths"] = [f"{root.rstrip('/')}/{place}" for place in places]
    return f"v{version}\n{json.dumps(metadata, separators=(',', ':'), ensure_ascii=False)}".encode()


def _stores(path: str, metadata: dict[str, Any]) -> list[dict[str, Any]]:
    return _list_of(path, metadata, "stateStoreInfo", dict)


def _list_of(path: str, found: dict[str, Any], name: str, kind: type) -> list[Any]:
    values = found.get(name)
    if not isinstance(values, list) or not values or not all(isinstance(value, kind) for value in values):
        raise UnreadableCheckpointError(path, f"has no list `{name}`")
    return values


def _names(path: str, metadata: dict[str, Any], operator: int) -> tuple[str, tuple[str, ...]]:
    info = metadata.get("operatorInfo")
    if not isinstance(info, dict) or not isinstance(info.get("operatorName"), str):
        raise UnreadableCheckpointError(path, "has no `operatorInfo`")
    if info.get("operatorId") != operator:
        raise UnreadableCheckpointError(path, f"describes operator {info.get('operatorId')!r}")
    stores = [store.get("storeName") for store in _stores(path, metadata)]
    if not all(isinstance(store, str) and store and "/" not in store for store in stores):
        raise UnreadableCheckpointError(path, f"names stores {stores!r}")
    return info["operatorName"], tuple(str(store) for store in stores)


def _places(path: str, store: dict[str, Any]) -> list[str]:
    return _list_of(path, store, "stateSchemaFilePaths", str)


def _newest_schema(path: str, store: dict[str, Any], operator: int) -> str:
    """Return where a store's schema is; one that may change has a file for each change."""
    if "stateSchemaFilePaths" in store:
        return _schema_path(path, _places(path, store)[-1])
    return f"{store_directory(operator, 0, store['storeName'])}/{METADATA_DIRECTORY}/schema"


def _schema_path(path: str, place: str) -> str:
    """Return where a schema is, relative to the checkpoint's root, of the absolute place in the metadata ``path``."""
    found = _SCHEMA_PLACE.fullmatch(place)
    if found is None:
        raise UnreadableCheckpointError(path, f"names {place} as the place of a state schema")
    return found.group(1)


def _named_schemas(checkpoint: Checkpoint, path: str, metadata: dict[str, Any]) -> Iterator[Needed]:
    for store in _stores(path, metadata):
        for place in _places(path, store):
            found = _schema_path(path, place)
            if found not in checkpoint:
                # Spark never deletes them. A copy whose metadata was not relocated has them elsewhere.
                raise UnreadableCheckpointError(path, f"names the state schema {place}, which this checkpoint lacks")
            yield checkpoint.need(found, "")


def _fixed_schemas(checkpoint: Checkpoint, operator: int, stores: Iterable[str], required: bool) -> Iterator[Needed]:
    """Yield the schemas that are in the first partition; operators that name theirs need have none there."""
    for store in stores:
        path = f"{store_directory(operator, 0, store)}/{METADATA_DIRECTORY}/schema"
        if required or path in checkpoint:
            yield checkpoint.need(path, "it is the schema of the state")
