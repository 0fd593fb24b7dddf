"""The one line of JSON that a benchmark prints last. Reads /proc and prints."""

import json
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def machine() -> dict[str, Any]:
    """Return what the figures were measured on."""
    cpu = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), ""
    )
    kib = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    return {
        "cpu": cpu or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(kib / 2**20, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def _lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines()


def print_report(bench: str, results: Mapping[str, float], parameters: Mapping[str, Any]) -> None:
    """Print the result, figures rounded to what they can bear."""
    rounded = {name: float(f"{value:.4g}") for name, value in results.items()}
    report = {"bench": bench, "figures": rounded, "parameters": dict(parameters), "machine": machine()}
    print(json.dumps(report), flush=True)
