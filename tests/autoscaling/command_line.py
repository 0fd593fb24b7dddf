"""What ``make autoscaling`` can be asked for. No I/O, but for help and what is refused."""

import argparse
import math
import re
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.autoscaling.application import Model
from tests.autoscaling.run import USUAL
from tests.autoscaling.traces import TRACES
from tidegate.autoscaling.algorithm.settings import Settings

DRAWN = "flights"
"""The trace of the picture, if it is simulated and nobody asks for another one."""
UTILIZATIONS = range(10, 96)
"""Per cent; as the CRD has it."""


def read_arguments(arguments: Sequence[str], description: str | None = None) -> argparse.Namespace:
    """Return what the command line asks for; what cannot be is named, and ends the process."""
    parser = ArgumentParser(
        prog="make autoscaling ARGS=…", description=description, epilog="All traces take about a minute."
    )
    _add_load(parser)
    _add_settings(parser)
    _add_picture(parser)
    asked = parser.parse_args(arguments)
    asked.drawn = asked.drawn or (DRAWN if DRAWN in asked.traces else asked.traces[0])
    if asked.drawn not in asked.traces:
        parser.error(f"--drawn {asked.drawn}: it is none of --traces {' '.join(asked.traces)}")
    return asked


def settings_of(asked: argparse.Namespace) -> Settings:
    """Return the settings of the rule."""
    return replace(
        USUAL,
        utilization=asked.target_utilization,
        down_interval=asked.scale_down_interval,
        stabilization=asked.stabilization,
    )


def _add_load(parser: ArgumentParser) -> None:
    names = f"{', '.join(TRACES)} (default: all)"
    parser.add_argument("--traces", nargs="+", choices=TRACES, default=list(TRACES), metavar="NAME", help=names)
    other = "another seed is another simulated application (default 1)"
    parser.add_argument("--seed", type=int, default=1, help=other)
    between = "seconds between two batches; 0: back to back (default 10)"
    parser.add_argument("--interval", type=_seconds, default=Model().interval, metavar="SECONDS", help=between)


def _add_settings(parser: ArgumentParser) -> None:
    where = "as spec.autoscaling."
    utilization = f"{where}targetUtilizationPercent (default 70); also of the first HPA and of the fixed number"
    parser.add_argument(
        "--target-utilization", type=_per_cent, default=USUAL.utilization, metavar="PER_CENT", help=utilization
    )
    interval = f"{where}scaleDown.intervalSeconds (default 10m)"
    parser.add_argument("--scale-down-interval", type=_span, metavar="TIME", default=USUAL.down_interval, help=interval)
    stabilization = f"{where}stabilizationWindowSeconds (default 15s)"
    parser.add_argument("--stabilization", type=_span, metavar="TIME", default=USUAL.stabilization, help=stabilization)


def _add_picture(parser: ArgumentParser) -> None:
    picture = "PNG or SVG to write (default autoscaling.png)"
    parser.add_argument("--picture", type=Path, default=Path("autoscaling.png"), metavar="FILE", help=picture)
    drawn = f"trace of the picture (default {DRAWN}, or else the first of --traces)"
    parser.add_argument("--drawn", choices=TRACES, metavar="NAME", help=drawn)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < math.inf:
        raise ArgumentTypeError(f"{text!r} is no number of seconds from 0")
    return seconds


def _per_cent(text: str) -> float:
    if not text.isdecimal() or int(text) not in UTILIZATIONS:
        raise ArgumentTypeError(f"{text!r} is no whole number from {UTILIZATIONS[0]} to {UTILIZATIONS[-1]}")
    return int(text) / 100


def _span(text: str) -> float:
    found = re.fullmatch(r"([1-9][0-9]{0,4})([smhd])", text)
    if found is None:
        raise ArgumentTypeError(f"{text!r} is no span of time such as 90m, 6h or 30d")
    return float(int(found[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]])
