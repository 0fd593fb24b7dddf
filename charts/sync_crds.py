"""Copy crds/*.yaml into the Helm chart, byte for byte; with ``--check`` say what differs instead.

Helm can only read files that lie inside the chart, so the chart needs copies of the one source of each CRD. Reads and
writes files of the checkout.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "crds"
COPY = ROOT / "charts" / "tidegate" / "files" / "crds"


def read_folder(folder: Path) -> dict[str, bytes]:
    """Return name -> content of the folder's YAML files; empty if the folder is not there."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.yaml"))}


def describe_drift(source: Mapping[str, bytes], copy: Mapping[str, bytes]) -> list[str]:
    """Return one line for each file whose copy is missing, differs, or has no source any more; pure."""
    missing = [f"{name}: not in the chart" for name in source if name not in copy]
    different = [f"{name}: the chart's copy differs" for name in source if name in copy and source[name] != copy[name]]
    orphaned = [f"{name}: in the chart, but not in crds/" for name in copy if name not in source]
    return sorted(missing + different + orphaned)


def write_copies(source: Mapping[str, bytes], copy: Mapping[str, bytes], folder: Path) -> None:
    """Make ``folder`` hold exactly ``source``; ``copy`` is what it holds now."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in copy.keys() - source.keys():
        (folder / name).unlink()
    for name, content in source.items():
        if copy.get(name) != content:
            (folder / name).write_bytes(content)


def main(arguments: list[str]) -> int:
    """Copy, or check; return the exit code: 0, 1 on drift, 2 if there is nothing to copy."""
    parser = argparse.ArgumentParser(description="Copy crds/*.yaml into charts/tidegate/files/crds.")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a copy differs")
    check = parser.parse_args(arguments).check
    source, copy = read_folder(SOURCE), read_folder(COPY)
    if not source:
        sys.stderr.write(f"{SOURCE.relative_to(ROOT)}/ holds no *.yaml: run this from a complete checkout\n")
        return 2
    drift = describe_drift(source, copy)
    if check and drift:
        sys.stderr.write("\n".join(drift) + "\nrun `make generate` and commit what it writes\n")
        return 1
    if not check:
        write_copies(source, copy, COPY)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
