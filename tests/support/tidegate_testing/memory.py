"""What a process needs of memory, and what the chart allows the operator. Reads the chart."""

from pathlib import Path

import yaml

VALUES = Path(__file__).parents[3] / "charts" / "tidegate" / "values.yaml"
_UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def peak_bytes(status: str) -> int:
    """Return the most bytes that a process ever had in memory, by the text of its ``/proc/PID/status``."""
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


def in_bytes(quantity: str) -> int:
    """Return what a quantity of memory comes to; it has a unit such as Mi."""
    return int(quantity[:-2]) * _UNITS[quantity[-2:]]


def chart_limit() -> int:
    """Return the bytes that the chart allows the operator."""
    return in_bytes(str(yaml.safe_load(VALUES.read_text())["resources"]["limits"]["memory"]))
