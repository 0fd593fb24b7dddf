"""How many examples a property is tried with: a third of them at the gate, all of them in ``make test-all``. Pure."""

import os

FRESH_SEEDS = "TIDEGATE_FRESH_SEEDS"
"""Set by ``make test-all``."""


def gate_share(examples: int) -> int:
    """Return how many of so many examples are tried in this run; the first ones, where they have numbers."""
    return examples if os.environ.get(FRESH_SEEDS) else max(1, examples // 3)
