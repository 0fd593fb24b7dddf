"""Spans of time as people write them in a spec: a whole number of seconds, minutes, hours or days. No I/O."""

from __future__ import annotations

import re

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_FORM = re.compile(r"([1-9][0-9]{0,4})([smhd])")


def seconds_of(text: str) -> float:
    """Return the seconds in a span such as 30s, 90m, 6h or 30d.

    Raises:
        ValueError: it is none; the CRD's schema takes no such text.
    """
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no span of time such as 90m, 6h or 30d")
    return float(int(found[1]) * _SECONDS[found[2]])
