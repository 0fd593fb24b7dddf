"""The gate: every tier of tests in one run, each minute accounted for. ``python -m tests.gate --help``."""
