"""The image with the runtime of the last landing: what it is made of. Runs git."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster import images, paths
from devcluster.images import SPARK, Image
from tidegate_testing import previous_image, previous_runtime
from tidegate_testing.previous_image import OF_THE_RUNTIME


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Image:
    return previous_image.image_in(tmp_path_factory.mktemp("last-landing"))


def files_below(root: Path, *kept: str) -> Iterator[str]:
    for path in kept:
        found = [root / path, *(root / path).rglob("*")]
        yield from (f.relative_to(root).as_posix() for f in found if f.is_file() and "__pycache__" not in f.parts)


def test_the_runtime_in_it_is_that_of_the_last_landing_to_the_byte(made: Image) -> None:
    listed = previous_runtime.git("ls-tree", "-r", "--name-only", previous_runtime.commit(), *OF_THE_RUNTIME)
    names = listed.stdout.decode().split()
    assert sorted(files_below(made.root, *OF_THE_RUNTIME)) == sorted(names)
    for name in names:
        stored = previous_runtime.git("cat-file", "blob", f"{previous_runtime.commit()}:{name}")
        assert (made.root / name).read_bytes() == stored.stdout, name
    assert len(names) > 100


def test_everything_else_in_it_is_this_checkouts(made: Image) -> None:
    others = [path for path in (SPARK.dockerfile, ".dockerignore", *SPARK.reads) if path not in OF_THE_RUNTIME]
    assert list(files_below(made.root, *others)) == list(files_below(paths.ROOT, *others))
    for name in files_below(made.root, *others):
        assert (made.root / name).read_bytes() == (paths.ROOT / name).read_bytes(), name


def test_it_is_another_image_than_that_of_the_cluster_and_no_other_build_makes_it(made: Image) -> None:
    assert made.name not in {image.name for image in images.OF_TESTS}
    assert images.inputs(made) != images.inputs(SPARK)


def test_a_runtime_is_told_from_another_one_by_its_digest(made: Image, tmp_path: Path) -> None:
    package = previous_runtime.unpack(tmp_path) / "tidegate_spark"
    assert previous_image.digest(tmp_path) == previous_image.digest(made.root)
    (package / "protocol.py").write_text("PROTOCOL = 99\n")
    assert previous_image.digest(tmp_path) != previous_image.digest(made.root)
