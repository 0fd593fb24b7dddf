"""Dividing all tests into slices of about the same length, so that each fits into an hour. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_OWN = ("tests/compatibility/", "tests/e2e/test_compatibility.py")


@dataclass(frozen=True)
class Slice:
    """The ``number``-th of ``count`` slices, from 1."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> "Slice":
        """Read ``1/3``; raise ValueError with the remedy for anything else."""
        found = re.fullmatch(r"(\d{1,2})/(\d{1,2})", text)
        if not found or not 1 <= int(found[1]) <= int(found[2]):
            raise ValueError(f"SLICE={text}: use k/n with 1 <= k <= n, such as 1/3")
        return cls(int(found[1]), int(found[2]))


def divide(seconds: Mapping[str, float], count: int) -> list[list[str]]:
    """Return the files of each slice: the longest first, each into the slice that is the shortest so far."""
    slices: list[list[str]] = [[] for _ in range(count)]
    lengths = [0.0] * count
    for file in sorted(seconds, key=lambda name: (-seconds[name], name)):
        shortest = lengths.index(min(lengths))
        slices[shortest].append(file)
        lengths[shortest] += seconds[file]
    return slices


def files_of(part: Slice, seconds: Mapping[str, float], folders: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Return the files of a slice by tier: each tier is divided by itself, so that all slices use both cores alike."""
    chosen = {}
    for tier, below in folders.items():
        prefixes = tuple(f"{folder}/" for folder in below)
        own = {file: taken for file, taken in seconds.items() if file.startswith(prefixes)}
        chosen[tier] = sorted(divide(own, part.count)[part.number - 1])
    return chosen


def has_own_slice(file: str) -> bool:
    """Return whether a file is of the compatibility suite: longer than any slice of the other tests, it has its own."""
    return file.startswith(_OWN)


def own_slice(files: Iterable[str], folders: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Return the files of the compatibility suite by tier, without tiers that have none."""
    own = [file for file in files if has_own_slice(file)]
    by_tier = {
        tier: [file for file in own if file.startswith(tuple(f"{folder}/" for folder in below))]
        for tier, below in folders.items()
    }
    return {tier: chosen for tier, chosen in by_tier.items() if chosen}
