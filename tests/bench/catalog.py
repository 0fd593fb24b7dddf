"""Memory that a catalog of snapshots takes, by snapshot. Starts nothing, reads no clock."""

import dataclasses
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

from tests.bench.options import bench_options
from tests.bench.report import print_report
from tidegate_spark.snapshots import catalog
from tidegate_spark.snapshots.catalog import Catalog, Snapshot, State
from tidegate_spark.snapshots.catalog_json import decode, encode

_FILE_BYTES = 1 << 20


def main(arguments: Sequence[str]) -> int:
    """Read a catalog of large snapshots: memory while it is known, and at most while it is read and written."""
    parser = bench_options("catalog", main.__doc__)
    parser.add_argument("--snapshots", type=int, default=20, help="each with as many objects")
    parser.add_argument("--objects", type=int, default=10_000, help="that a snapshot refers to")
    parser.add_argument("--new", type=int, default=1_000, help="of them that its parent does not have")
    options = parser.parse_args(arguments)
    if not (options.snapshots > 0 and 0 < options.new <= options.objects):
        parser.error("expected --snapshots of at least 1, and --new between 1 and --objects")
    document = encode(catalog_of(options.snapshots, options.objects, options.new))
    known, read = memory_of(lambda: decode(document))
    whole = decode(document)
    _, written = memory_of(lambda: encode(whole))
    kib = 1024 * options.snapshots
    results = {
        "document_kib_per_snapshot": len(document) / kib,
        "known_kib_per_snapshot": known / kib,
        "most_kib_per_snapshot_read": read / kib,
        "most_kib_per_snapshot_written": (known + written) / kib,
    }
    print_report("catalog", results, vars(options))
    return 0


def catalog_of(snapshots: int, objects: int, new: int) -> Catalog:
    """Return a catalog whose snapshots share all but their newest objects with those before them."""
    made = Catalog()
    for number in range(snapshots):
        name, first = f"main-{number:06}", number * new
        wanted = {f"{each:032x}.zip": _FILE_BYTES for each in range(first, first + objects)}
        made = catalog.begin(made, name, Snapshot(State.TAKING, float(number)))
        made, _ = catalog.reserve(made, name, wanted)
        taken = made.snapshots[name]
        complete = dataclasses.replace(taken, state=State.READY, queries={"main": number}, digest="-", files=1)
        made = catalog.finish(made, name, complete)
    return made


def memory_of(act: Callable[[], Any]) -> tuple[int, int]:
    """Return the bytes that what an act returns takes, and that the act took at most."""
    tracemalloc.start()
    try:
        made = act()
        kept, most = tracemalloc.get_traced_memory()
        del made
        return kept, most
    finally:
        tracemalloc.stop()
