"""The chart with everything for Prometheus, rendered by Helm. Runs helm; needs no server."""

from typing import Any

import pytest

from devcluster import tools
from tidegate_testing.helm import Helm

EVERYTHING: dict[str, Any] = {"monitoring": {"enabled": True}}


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    return Helm(tools.program("helm"), tmp_path_factory.mktemp("helm"))
