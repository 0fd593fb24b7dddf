"""What a killed build leaves mounted, as the kernel lists it."""

from pathlib import Path

from devcluster.images import mounts_below

_LISTED = """\
22 1 0:20 / /proc rw,nosuid - proc proc rw
40 1 0:40 / /cache/images/store/root/overlay/a/merged rw - overlay overlay rw
41 40 0:41 / /cache/images/store/root/overlay/a/merged/proc rw - proc proc rw
42 1 0:42 / /cache/images/store-of-another/root rw - tmpfs tmpfs rw
43 1 0:43 / /cache/images/store/with\\040space rw - tmpfs tmpfs rw
"""


def test_only_what_is_mounted_inside_the_store_is_cleared_and_the_innermost_first() -> None:
    overlay = Path("/cache/images/store/root/overlay/a/merged")
    assert mounts_below(Path("/cache/images/store"), _LISTED) == [
        Path("/cache/images/store/with space"),
        overlay / "proc",
        overlay,
    ]
