"""Messages about secrets in the spec. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

_NAMED = 5
"""Fields that are named one by one."""

STORAGE = "spec.storage.credentialsSecretRef"
CHANNEL = "spec.control.channel.credentialsSecretRef"
VARIABLE = "valueFrom.secretKeyRef of a variable (spec.application.env)"
ARGUMENT = "a variable that the script reads (spec.application.env, valueFrom.secretKeyRef)"
HADOOP = "the value ${env.NAME}, with NAME in spec.application.env (valueFrom.secretKeyRef)"
SETTING = "a variable from which the script makes the setting (spec.application.env, valueFrom.secretKeyRef)"


def in_plain_text(fields: Sequence[str], places: Sequence[str]) -> str:
    """Return the text; ``places`` are where they belong."""
    more = len(fields) - _NAMED
    named = ", ".join(fields[:_NAMED]) + (f" and {more} more" if more > 0 else "")
    return (
        f"{named}: plain text that looks like a secret, readable in the resource and in its pods. Replace it by "
        f"{'; or by '.join(places)}."
    )
