"""Folders and files that only their owner reads: they hold keys and tokens. Writes files."""

import os
from pathlib import Path


def make_folder(folder: Path) -> None:
    """Have a folder that only its owner may enter, whatever the umask says; parents are made as usual."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)


def write(file: Path, text: str) -> None:
    """Write a file that only its owner reads, from its first byte on; one that is there is replaced.

    Raises:
        OSError: the folder is not there or not ours.
    """
    draft = file.with_name(f".{file.name}.draft")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as output:
        output.write(text)
    draft.rename(file)
