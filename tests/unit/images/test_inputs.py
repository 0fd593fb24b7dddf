"""What an image is made of: the hash that decides whether it is built again, and what its Dockerfile reads."""

import dataclasses
import re
import shutil
from pathlib import Path

import pytest

from devcluster import images, paths
from devcluster.images import IMAGES, OPERATOR, SPARK, SPARK_BEFORE, STOCK, Image


@pytest.fixture
def made(tmp_path: Path) -> Image:
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    (tmp_path / ".dockerignore").write_text("*\n")
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "main.py").write_text("print(1)\n")
    return Image("localhost/app:dev", "Dockerfile", ("source",), root=tmp_path)


@pytest.mark.parametrize("changed", ["Dockerfile", ".dockerignore", "source/main.py", "source/added.py"])
def test_a_changed_or_added_file_makes_another_image(made: Image, changed: str) -> None:
    before = images.inputs(made)
    (made.root / changed).write_text("something else\n")
    assert images.inputs(made) != before


def test_a_file_made_executable_makes_another_image(made: Image) -> None:
    before = images.inputs(made)
    (made.root / "source" / "main.py").chmod(0o755)
    assert images.inputs(made) != before


def test_another_build_argument_makes_another_image(made: Image) -> None:
    other = dataclasses.replace(made, arguments=(("SPARK_LINE", "-4.1"),))
    assert images.inputs(other) != images.inputs(made)


def test_the_same_files_elsewhere_make_the_same_image(made: Image, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "copy"
    shutil.copytree(made.root, elsewhere)
    assert images.inputs(dataclasses.replace(made, root=elsewhere)) == images.inputs(made)


def test_the_database_of_time_zones_is_asked_for_by_name() -> None:
    """Python has none of its own: it comes with the distribution, or as a package."""
    operator = (paths.ROOT / "images/operator/Dockerfile").read_text()
    system = operator.partition("AS system")[2].partition("\nFROM ")[0]
    assert "tzdata" in re.findall(r"install .*--no-install-recommends (.*) \\", system)[0].split()
    for line in ("", "-4.1"):
        assert re.search(r"^tzdata==", (paths.ROOT / "locks" / f"spark{line}.lock").read_text(), re.MULTILINE)


def test_both_lines_of_spark_have_the_same_sets_of_jars_and_the_same_python_packages() -> None:
    jars = paths.ROOT / "images" / "jars"
    for name in ("s3a", "kafka"):
        modules = [
            re.findall(r"<artifactId>(.+?)</artifactId>", (jars / s / "pom.xml").read_text())[1:]
            for s in (name, f"{name}-4.1")
        ]
        assert modules[0] == modules[1]
    newest, before = ((paths.ROOT / "locks" / f"spark{line}.lock").read_text() for line in ("", "-4.1"))
    others = [
        {p for p in re.findall(r"^\S+==\S+", lock, re.MULTILINE) if "pyspark" not in p} for lock in (newest, before)
    ]
    assert others[0] == others[1]


def test_byte_code_and_files_the_image_does_not_read_change_nothing(made: Image) -> None:
    before = images.inputs(made)
    (made.root / "source" / "__pycache__").mkdir()
    (made.root / "source" / "__pycache__" / "main.pyc").write_bytes(b"x")
    (made.root / "README.md").write_text("x")
    assert images.inputs(made) == before


def test_an_input_that_is_missing_is_an_error_that_names_it(made: Image) -> None:
    with pytest.raises(RuntimeError, match="gone"):
        images.inputs(dataclasses.replace(made, reads=("gone",)))


@pytest.mark.parametrize("image", [*IMAGES, SPARK_BEFORE], ids=lambda image: image.name)
def test_all_that_a_dockerfile_copies_from_the_checkout_is_among_its_inputs(image: Image) -> None:
    dockerfile = (paths.ROOT / image.dockerfile).read_text()
    dockerfile = dockerfile.replace("${SPARK_LINE}", dict(image.arguments).get("SPARK_LINE", ""))
    copied = [
        source.rstrip("/").removesuffix("/*.py")
        for line in re.findall(r"^COPY (?!--from)(.+)$", dockerfile, re.MULTILINE)
        for source in line.split()[:-1]
    ]
    assert copied
    assert set(copied) <= set(image.reads)


def _stages(image: Image) -> dict[str, str]:
    """Return what each named stage of a Dockerfile executes; the last stage has no name."""
    lines = (paths.ROOT / image.dockerfile).read_text().splitlines()
    text = "".join(f"{line}\n" for line in lines if line and not line.startswith("#"))
    parts = re.split(r"^(?=FROM )", text, flags=re.MULTILINE)[1:]
    named = {re.match(r"FROM \S+ AS (\S+)", part): part for part in parts}
    return {found[1]: part for found, part in named.items() if found}


@pytest.mark.parametrize(
    ("one", "other", "stage"), [(SPARK, STOCK, "system"), (SPARK, STOCK, "python"), (SPARK, OPERATOR, "jars")]
)
def test_a_stage_that_two_images_have_is_word_for_word_the_same_so_that_it_is_built_once(
    one: Image, other: Image, stage: str
) -> None:
    assert _stages(one)[stage] == _stages(other)[stage]


def test_the_stage_of_jars_depends_on_neither_an_argument_nor_a_stage_that_is_an_images_own() -> None:
    jars = _stages(SPARK)["jars"]
    assert jars.startswith("FROM ${BASE} ")
    assert not re.search(r"^ARG", jars, re.MULTILINE)
