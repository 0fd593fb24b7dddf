"""Says which pieces of the product are alike: python -m tests.clones [--least NODES]; ends with 1 if any are."""

import argparse
import subprocess
import sys
from pathlib import Path

from tests.clones import LEAST, Pair, find_pairs

ROOT = Path(__file__).parents[2]
PRODUCT = ("operator/tidegate/*.py", "spark_app/tidegate_spark/*.py")
"""Not the samples: each of them is a file that a reader copies."""


def main() -> int:
    """Print each pair in a line."""
    parser = argparse.ArgumentParser(prog="python -m tests.clones", description=__doc__)
    parser.add_argument("--least", type=int, default=LEAST, help="nodes of the syntax tree that a piece has")
    found = pairs_of_product(parser.parse_args().least)
    for pair in found:
        sys.stdout.write(f"{pair.one} is like {pair.other} ({pair.weight} nodes)\n")
    return 1 if found else 0


def pairs_of_product(least: int = LEAST) -> list[Pair]:
    """Return the pairs of alike pieces in the checkout."""
    listing = subprocess.run(["git", "ls-files", *PRODUCT], cwd=ROOT, check=True, capture_output=True, text=True)
    sources = {path: (ROOT / path).read_text() for path in listing.stdout.splitlines() if (ROOT / path).exists()}
    return find_pairs(sources, least)


if __name__ == "__main__":
    sys.exit(main())
