"""Java that only tests have, compiled against what Spark has. Starts a compiler, does I/O."""

import subprocess
from pathlib import Path

from tidegate_testing import class_archive


def compiled(sources: Path, folder: Path) -> Path:
    """Compile all files below ``sources`` into a folder, and return it.

    Raises:
        subprocess.CalledProcessError: they do not compile, or not without a warning.
    """
    options = ["--release", "17", "-proc:none", "-Xlint:all,-classfile,-path", "-Werror"]
    files = sorted(map(str, sources.rglob("*.java")))
    class_path = f"{class_archive.jars()}/*"
    subprocess.run(["javac", *options, "-d", str(folder), "-classpath", class_path, *files], check=True)
    return folder
