"""What every tier shares: property tests without deadlines, because a busy machine is no failure.

At the gate (``CI``) they try the same courses each time for the same code: what chance finds is found at a desk, where
somebody can make a test of it, and does not turn a gate red that has nothing to do with it. ``make test-all`` looks for
more: it asks for fresh seeds (``TIDEGATE_FRESH_SEEDS``), and for three times as many (tidegate_testing.examples).

Tests of tools are long unless what they test has changed (tests/gate/tools.py).
"""

import os

from hypothesis import HealthCheck, settings

from tidegate_testing.examples import FRESH_SEEDS, gate_share

pytest_plugins = ["tests.gate.tools"]

# The gate sets it for its steps. What tests start would inherit it, and a script's line and its end would be written
# one after the other, with a line of another thread or of the JVM between them: seldom, and never by hand.
os.environ.pop("PYTHONUNBUFFERED", None)

settings.register_profile(
    "tidegate",
    deadline=None,
    max_examples=gate_share(100),
    suppress_health_check=[HealthCheck.too_slow],  # a stopwatch as well
    derandomize=bool(os.environ.get("CI")) and not os.environ.get(FRESH_SEEDS),
)
settings.load_profile("tidegate")
