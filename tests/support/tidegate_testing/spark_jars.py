"""The jars that the images put beside Spark, fetched by the images' own script into the cache. Does I/O."""

import hashlib
import subprocess
from pathlib import Path

from devcluster import paths

IMAGES_JARS = paths.ROOT / "images" / "jars"


def fetched(name: str) -> Path:
    """Return the folder with the set ``name`` of ``images/jars``, fetched by Maven unless the cache has it."""
    digest = hashlib.sha256((IMAGES_JARS / name / "SHA256SUMS").read_bytes()).hexdigest()[:12]
    folder = paths.cache() / "jars" / f"{name}-{digest}"
    complete = folder / ".complete"
    if not complete.exists():
        subprocess.run(["sh", str(IMAGES_JARS / "fetch.sh"), name, str(folder)], check=True)
        complete.touch()
    return folder


def merged(names: tuple[str, ...], target: Path) -> Path:
    """Fill ``target`` with links to the jars of several sets, so that one class path entry names them all."""
    target.mkdir(parents=True, exist_ok=True)
    for name in names:
        for jar in fetched(name).glob("*.jar"):
            link = target / jar.name
            if not link.exists():
                link.symlink_to(jar)
    return target
