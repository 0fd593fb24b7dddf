"""Values of the chart with which tests render everything there is. No I/O."""

from typing import Any

EVERY_POLICY: dict[str, Any] = {
    "access": {"enabled": True},
    "applications": {
        "serviceAccounts": ["streams"],
        "storagePrefixes": ["s3://streams/team-a/"],
        "endpoints": [""],
        "imagePrefixes": ["example/"],
        "restrictPodTemplates": True,
    },
}
"""Each admission policy, and each rule of them."""
