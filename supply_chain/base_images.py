"""The images that Dockerfiles start with, by digest: ``python -m supply_chain.base_images [--check]``.

``images/bases.lock`` is the list, one ``name:tag@sha256:…`` a line; each Dockerfile repeats its line, so that a plain
``docker build`` uses it. Without ``--check`` the registries are asked by skopeo, which knows this machine's mirrors and
passwords, and lock and Dockerfiles are written again, all or none. Reads and writes files of the checkout.
"""

import argparse
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LOCK = Path("images/bases.lock")

_BY_DIGEST = re.compile(r"(?P<name>[a-z0-9][a-z0-9._/:-]*)@(?P<digest>sha256:[0-9a-f]{64})")
_FROM = re.compile(r"FROM\s+(?:--\S+\s+)*(?P<image>\S+)(?:\s+AS\s+(?P<stage>\S+))?", re.IGNORECASE)
_ARGUMENT = re.compile(r"ARG\s+(?P<name>\w+)=(?P<value>\S+)")
_TAKES = re.compile(r"(?:COPY|ADD)\s+.*?--from=(?P<image>\S+)|RUN\s+.*?--mount=\S*\bfrom=(?P<mounted>[^\s,]+)")
_PLATFORMS = {"amd64", "arm64"}
_PATIENCE = 60.0


class UnreachableError(Exception):
    """A registry did not say which image a tag is."""


def read_lock(text: str) -> dict[str, str]:
    """Return the digest of each image, by name and tag; pure.

    Raises:
        ValueError: a line is no image with a digest.
    """
    found: dict[str, str] = {}
    for line in text.splitlines():
        entry = _BY_DIGEST.fullmatch(line)
        if not entry:
            raise ValueError(f"{LOCK}: {line!r} is no image by digest; write name:tag@sha256:… or make renew-bases")
        found[entry["name"]] = entry["digest"]
    return found


def foreign_images(dockerfile: str) -> list[str]:
    """Return what a Dockerfile takes from registries: images that it starts with, copies from or mounts; pure."""
    arguments: dict[str, str] = {}
    stages: set[str] = {"scratch"}
    found: list[str] = []
    for line in dockerfile.replace("\\\n", " ").splitlines():
        text = line.strip()
        if given := _ARGUMENT.match(text):
            arguments[given["name"]] = given["value"]
        elif begin := _FROM.match(text):
            found += [begin["image"]] if begin["image"] not in stages else []
            stages |= {begin["stage"]} if begin["stage"] else set()
        elif taken := _TAKES.match(text):
            image = taken["image"] or taken["mounted"]
            found += [image] if image not in stages and not image.isdigit() else []
    named = [re.sub(r"\$\{?(\w+)\}?", lambda name: arguments.get(name[1], name[0]), image) for image in found]
    return list(dict.fromkeys(named))


def differences(lock: Mapping[str, str], dockerfiles: Mapping[str, str]) -> list[str]:
    """Say which images of which Dockerfiles are not by the lock's digest, and which lines nobody uses; pure."""
    problems, used = [], set()
    for path, text in dockerfiles.items():
        for image in foreign_images(text):
            by_digest = _BY_DIGEST.fullmatch(image)
            name = by_digest["name"] if by_digest else image
            used.add(name)
            if not by_digest:
                problems.append(f"{path}: {image} is a tag, which anybody may move who owns it; name it by digest")
            elif name not in lock:
                problems.append(f"{path}: {name} is not in {LOCK}")
            elif lock[name] != by_digest["digest"]:
                problems.append(f"{path}: {name} has another digest than in {LOCK}")
    return problems + [f"{LOCK}: no Dockerfile uses {name}" for name in lock if name not in used]


def renewed(text: str, digests: Mapping[str, str]) -> str:
    """Return a text in which each image has its new digest; pure."""

    def replace(found: re.Match[str]) -> str:
        return f"{found['name']}@{digests.get(found['name'], found['digest'])}"

    return _BY_DIGEST.sub(replace, text)


def ask_registry(name: str) -> bytes:
    """Return what the registry has under a tag, byte for byte.

    Raises:
        UnreachableError: there is no skopeo, or it got no answer.
    """
    command = ["skopeo", "inspect", "--raw", f"docker://{name}"]
    try:
        done = subprocess.run(command, capture_output=True, check=True, timeout=_PATIENCE)
    except FileNotFoundError:
        raise UnreachableError("skopeo is not installed: make setup") from None
    except subprocess.TimeoutExpired:
        raise UnreachableError(f"no answer within {_PATIENCE:.0f} s") from None
    except subprocess.CalledProcessError as error:
        raise UnreachableError(error.stderr.decode(errors="replace").strip()[-500:]) from None
    return done.stdout


def digest_of(index: bytes) -> str:
    """Return the digest of an index of images, one for each platform; pure.

    Raises:
        ValueError: it is something else, or lacks a platform: pinned, it would keep others from building.
    """
    try:
        content: dict[str, Any] = json.loads(index)
        platforms = {entry["platform"]["architecture"] for entry in content["manifests"]}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError("it is no index of images for several platforms") from error
    missing = _PLATFORMS - platforms
    if missing:
        raise ValueError(f"it has no image for {', '.join(sorted(missing))}")
    return f"sha256:{hashlib.sha256(index).hexdigest()}"


def renew(root: Path, ask: Callable[[str], bytes]) -> list[str]:
    """Ask for each image of the lock; write lock and Dockerfiles; return one line for each that changed.

    Raises:
        UnreachableError: a registry did not answer. Then nothing is written.
        ValueError: it answered with something that cannot be pinned. Then nothing is written either.
    """
    lock = read_lock((root / LOCK).read_text())
    digests = {}
    for name in lock:
        try:
            digests[name] = digest_of(ask(name))
        except (UnreachableError, ValueError) as error:
            raise type(error)(f"{name}: {error}") from error
    for path in [root / LOCK, *_dockerfiles(root)]:
        text = path.read_text()
        if (new := renewed(text, digests)) != text:
            path.write_text(new)
    return [f"{name}: {lock[name]} → {digest}" for name, digest in digests.items() if lock[name] != digest]


def _dockerfiles(root: Path) -> Iterable[Path]:
    return sorted((root / "images").glob("*/Dockerfile"))


def main(arguments: list[str]) -> int:
    """Renew or check; return the exit code: 0, 1 if something is not pinned, 2 if a registry did not say."""
    parser = argparse.ArgumentParser(prog="python -m supply_chain.base_images", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing; fail if an image is not by its digest")
    if parser.parse_args(arguments).check:
        texts = {str(path.relative_to(ROOT)): path.read_text() for path in _dockerfiles(ROOT)}
        problems = differences(read_lock((ROOT / LOCK).read_text()), texts)
        sys.stderr.write("".join(f"{problem}\n" for problem in problems))
        return 1 if problems else 0
    try:
        changed = renew(ROOT, ask_registry)
    except (UnreachableError, ValueError) as error:
        sys.stderr.write(
            f"{error}\nNothing was changed. Digests come from the registry of each image alone: run this on a machine "
            "that reaches it, or name a mirror in ~/.config/containers/registries.conf.\n"
        )
        return 2
    print("\n".join(changed) or "every digest is the newest of its tag")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
