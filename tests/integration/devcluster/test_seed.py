"""Images that are unpacked once are in every copy of the seed, and no copy reaches back. Needs root and containerd."""

from pathlib import Path

import pytest

from devcluster import busybox, seed
from devcluster.control import ComponentError


def names_in(ctr: seed.Ctr) -> list[str]:
    return sorted(ctr("images", "ls", "--quiet").split())


def names(root: Path) -> list[str]:
    with seed.opened(root) as ctr:
        return names_in(ctr)


@pytest.fixture
def planted(tmp_path: Path) -> tuple[Path, Path]:
    """A seed with one archive's images, and its copy."""
    root, copy = tmp_path / "seed", tmp_path / "cluster"
    busybox.write_archive(tmp_path / "images.tar")
    with seed.opened(root) as ctr:
        ctr("images", "import", tmp_path / "images.tar")
    assert seed.plant(root, copy)
    # What is opened as a seed says that it is whole.
    seed._mark(copy).touch()
    return root, copy


def test_a_copy_has_the_images_unpacked_and_what_it_loses_the_seed_keeps(planted: tuple[Path, Path]) -> None:
    root, copy = planted
    assert names(copy) == names(root) != []
    with seed.opened(copy) as ctr:
        ctr("images", "rm", "--sync", *names_in(ctr))
    assert names(copy) == []
    assert busybox.SHELL_IMAGE in names(root)
    assert [file for file in root.rglob("busybox") if file.is_file() and file.stat().st_size] != []


def test_files_of_images_are_shared_and_databases_are_not(planted: tuple[Path, Path]) -> None:
    _, copy = planted
    programs = [file for file in copy.rglob("busybox") if file.is_file() and not file.is_symlink()]
    assert {file.stat().st_nlink > 1 for file in programs} == {True}
    assert {file.stat().st_nlink for file in copy.glob("io.containerd.*/*.db")} == {1}


def test_a_seed_that_was_not_closed_well_is_neither_planted_nor_kept(tmp_path: Path) -> None:
    root = tmp_path / "seed"
    busybox.write_archive(tmp_path / "images.tar")
    with seed.opened(root) as ctr:
        ctr("images", "import", tmp_path / "images.tar")
    with pytest.raises(ComponentError, match="absent"), seed.opened(root) as ctr:
        ctr("images", "import", tmp_path / "absent")
    assert not seed.plant(root, tmp_path / "cluster")
    assert not (tmp_path / "cluster").exists()
    assert names(root) == []
