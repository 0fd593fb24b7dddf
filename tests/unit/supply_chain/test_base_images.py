"""Dockerfiles start with images by digest, which one file lists; a tag is refused, and renewing is all or none."""

import hashlib
import json
from pathlib import Path

import pytest

from supply_chain import base_images
from supply_chain.base_images import LOCK, UnreachableError

ONE, OTHER = (f"sha256:{digit * 64}" for digit in "12")
BASE = {"debian:12-slim": ONE}


def index(*architectures: str) -> bytes:
    return json.dumps({"manifests": [{"platform": {"architecture": a}} for a in architectures]}).encode()


def checkout(folder: Path, *, lock: str, dockerfile: str) -> Path:
    (folder / "images" / "spark").mkdir(parents=True)
    (folder / LOCK).write_text(lock)
    (folder / "images" / "spark" / "Dockerfile").write_text(dockerfile)
    return folder


def test_the_images_of_this_checkout_are_by_digest() -> None:
    assert base_images.main(["--check"]) == 0


@pytest.mark.parametrize(
    "line",
    [
        "FROM debian:12-slim",
        "FROM debian:12-slim AS system",
        "FROM --platform=linux/amd64 debian:12-slim",
        "ARG BASE=debian:12-slim\nFROM ${BASE} AS system",
        "FROM scratch\nCOPY --from=debian:12-slim /bin/sh /bin/sh",
        "FROM scratch\nCOPY --chown=0 --from=debian:12-slim /bin/sh /bin/sh",
        "FROM scratch\nRUN --mount=type=bind,from=debian:12-slim,target=/base true",
    ],
)
def test_an_image_by_tag_alone_is_refused_wherever_it_is_named(line: str) -> None:
    (problem,) = base_images.differences(BASE, {"Dockerfile": f"{line}\n"})
    assert problem.startswith("Dockerfile: debian:12-slim is a tag")


@pytest.mark.parametrize(
    ("image", "lock", "said"),
    [
        (f"debian:12-slim@{OTHER}", BASE, "Dockerfile: debian:12-slim has another digest than in images/bases.lock"),
        (f"debian:12-slim@{ONE}", {}, "Dockerfile: debian:12-slim is not in images/bases.lock"),
        (f"debian:12-slim@{ONE}", BASE | {"python:3": ONE}, "images/bases.lock: no Dockerfile uses python:3"),
        ("debian:12-slim@sha256:123", BASE, "Dockerfile: debian:12-slim@sha256:123 is a tag"),
        ("$BASE", {}, "Dockerfile: $BASE is a tag"),
    ],
)
def test_a_digest_that_the_lock_does_not_have_is_refused(image: str, lock: dict[str, str], said: str) -> None:
    assert any(problem.startswith(said) for problem in base_images.differences(lock, {"Dockerfile": f"FROM {image}\n"}))


def test_stages_of_the_same_file_and_scratch_are_nobody_elses() -> None:
    text = (
        f"FROM debian:12-slim@{ONE} AS one\nFROM one AS two\nCOPY --from=one /a /a\nCOPY --from=0 /a /b\nFROM scratch\n"
    )
    assert base_images.differences(BASE, {"Dockerfile": text}) == []


@pytest.mark.parametrize("line", ["debian:12-slim", "", f"debian@{ONE} # newest", f"debian:12-slim@{ONE[:-1]}"])
def test_a_line_of_the_lock_that_is_no_image_by_digest_is_an_error(line: str) -> None:
    with pytest.raises(ValueError, match="no image by digest"):
        base_images.read_lock(f"{line}\n")


def test_renewing_writes_the_digest_of_what_the_registry_has_into_the_lock_and_into_each_dockerfile(
    tmp_path: Path,
) -> None:
    root = checkout(tmp_path, lock=f"debian:12-slim@{ONE}\n", dockerfile=f"ARG BASE=debian:12-slim@{ONE}\nFROM $BASE\n")
    content = index("amd64", "arm64")
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    assert base_images.renew(root, lambda _: content) == [f"debian:12-slim: {ONE} → {digest}"]
    assert (root / LOCK).read_text() == f"debian:12-slim@{digest}\n"
    assert f"ARG BASE=debian:12-slim@{digest}\n" in (root / "images" / "spark" / "Dockerfile").read_text()
    assert base_images.renew(root, lambda _: content) == []


def test_where_one_registry_does_not_answer_nothing_is_written(tmp_path: Path) -> None:
    lock = f"debian:12-slim@{ONE}\npython:3@{ONE}\n"
    root = checkout(tmp_path, lock=lock, dockerfile=f"FROM debian:12-slim@{ONE}\nFROM python:3@{ONE}\n")

    def ask(name: str) -> bytes:
        if name == "python:3":
            raise UnreachableError("no such host")
        return index("amd64", "arm64")

    with pytest.raises(UnreachableError, match="python:3: no such host"):
        base_images.renew(root, ask)
    assert (root / LOCK).read_text() == lock
    assert (root / "images" / "spark" / "Dockerfile").read_text().count(ONE) == 2


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (index("amd64"), "it has no image for arm64"),
        (b'{"config": {}, "layers": []}', "no index of images"),
        (b"<html>", "no index of images"),
        (b'{"manifests": [1]}', "no index of images"),
    ],
)
def test_an_answer_that_is_no_index_for_both_platforms_is_not_pinned(content: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        base_images.digest_of(content)
