"""What the autoscaler is asked to do and what it left in the status, in its own terms. No I/O."""

from __future__ import annotations

from tidegate.model.spec import AutoscalingMode
from tidegate.model.streaming_app import StreamingApp


def is_autoscaled(app: StreamingApp) -> bool:
    """Return whether the autoscaler decides how many executors there are."""
    spec = app.spec.autoscaling
    return spec is not None and spec.mode is AutoscalingMode.ACTIVE
