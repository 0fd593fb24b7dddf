"""The stored form of the catalog. Pure.

Object names are listed once in the order in which they came, and a snapshot's references are runs of that list: so the
document grows with what changed, not with objects times snapshots.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tidegate_spark.contract.json_form import from_stored, to_json
from tidegate_spark.snapshots.catalog import Catalog, Snapshot, State
from tidegate_spark.storage.store import SnapshotError, naming_newer

VERSION = 1


class UnreadableCatalogError(SnapshotError):
    """The catalog is not one."""


@dataclass(frozen=True)
class _SnapshotDocument:
    state: State
    created: float
    lineage: int
    parent: str
    manual: bool
    objects: tuple[int, ...]
    """First and number, of each run."""
    holders: tuple[str, ...]
    queries: dict[str, int]
    sequence: int
    digest: str
    files: int
    bytes: int


@dataclass(frozen=True)
class _Document:
    version: int
    serial: int = 0
    objects: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    condemned: tuple[str, ...] = ()
    gone: dict[str, float] = field(default_factory=dict)
    snapshots: dict[str, _SnapshotDocument] = field(default_factory=dict)


def encode(catalog: Catalog) -> bytes:
    """Return the document of ``catalog``."""
    number = {name: index for index, name in enumerate(catalog.objects)}
    snapshots = {
        name: _SnapshotDocument(
            **{
                **vars(snapshot),
                "objects": tuple(_runs(number[known] for known in snapshot.objects)),
                "holders": tuple(sorted(snapshot.holders)),
                "queries": dict(snapshot.queries),
            }
        )
        for name, snapshot in catalog.snapshots.items()
    }
    document = _Document(
        VERSION,
        catalog.serial,
        tuple(catalog.objects),
        tuple(catalog.objects.values()),
        tuple(sorted(catalog.condemned)),
        dict(catalog.gone),
        snapshots,
    )
    return to_json(document).encode()


def decode(body: bytes) -> Catalog:
    """Return the catalog of a document.

    Raises:
        NewerStorageError: a newer Tidegate wrote it.
        UnreadableCatalogError: it is none.
    """
    try:
        with naming_newer("the catalog of snapshots"):
            document = from_stored(_Document, body, VERSION)
        if len(document.objects) != len(document.sizes):
            raise ValueError(f"{len(document.objects)} objects and {len(document.sizes)} sizes")
        return Catalog(
            document.serial,
            {name: _snapshot(snapshot, document.objects) for name, snapshot in document.snapshots.items()},
            dict(zip(document.objects, document.sizes)),  # noqa: B905 - strict= is newer than the Python of Spark images
            frozenset(document.condemned),
            document.gone,
        )
    except (ValueError, IndexError) as error:
        raise UnreadableCatalogError(f"the catalog of snapshots cannot be read: {error}") from error


def _snapshot(document: _SnapshotDocument, names: tuple[str, ...]) -> Snapshot:
    objects = frozenset(_named(document.objects, names))
    return Snapshot(**{**vars(document), "objects": objects, "holders": frozenset(document.holders)})


def _named(runs: tuple[int, ...], names: tuple[str, ...]) -> Iterator[str]:
    """Yield the names of runs, which stand one behind the other: a short document could take hours otherwise.

    Raises:
        ValueError: they overlap, or lead beyond the names.
    """
    after = 0
    for start, count in zip(runs[::2], (*runs[1::2], 0)):  # noqa: B905 - as above
        if start < after or count < 1 or start + count > len(names):
            raise ValueError(f"a run of {count!r:.20} from {start!r:.20} does not fit {len(names)} objects")
        after = start + count
        yield from names[start:after]


def _runs(numbers: Iterable[int]) -> Iterator[int]:
    """Yield first and number of each run of consecutive ``numbers``."""
    start = count = 0
    for number in sorted(numbers):
        if count and number == start + count:
            count += 1
            continue
        if count:
            yield from (start, count)
        start, count = number, 1
    if count:
        yield from (start, count)
