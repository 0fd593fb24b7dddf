"""Helm as a user has it. Runs processes; keeps Helm's own folders inside the one it is given."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegate_testing import plain_yaml

Values = Mapping[str, Any]


class HelmError(AssertionError):
    """Helm said no; the text is what it printed."""


@dataclass(frozen=True)
class Helm:
    """Helm with its own configuration and cache; without a kubeconfig it can still lint and render."""

    binary: Path
    home: Path
    kubeconfig: Path | None = None

    def run(self, *arguments: str, values: Values | None = None, timeout: float = 60) -> str:
        """Return what Helm printed; raise HelmError with its words if it failed.

        Args:
            values: passed as Helm gets them from ``--values``, on its standard input.
            timeout: seconds.
        """
        folders = {f"HELM_{kind}_HOME": str(self.home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
        kubeconfig = {"KUBECONFIG": str(self.kubeconfig or os.devnull)}
        done = subprocess.run(
            [str(self.binary), *arguments, *([] if values is None else ["--values", "-"])],
            input=None if values is None else json.dumps(values),
            env={**os.environ, **folders, **kubeconfig},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if done.returncode != 0:
            raise HelmError(f"helm {' '.join(arguments)}: {done.stdout.strip()} {done.stderr.strip()}")
        return done.stdout

    def render(
        self, chart: Path, release: str, namespace: str, values: Values | None = None, apis: Sequence[str] = ()
    ) -> list[dict[str, Any]]:
        """Return the objects ``helm template`` makes of the chart, for a cluster with these APIs beside the usual."""
        options = [option for api in apis for option in ("--api-versions", api)]
        text = self.run("template", release, str(chart), "--namespace", namespace, *options, values=values or {})
        return [document for document in plain_yaml.load_all(text) if document]
