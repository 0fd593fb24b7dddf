"""The wheel holds both import packages and nothing that would shadow a module. Builds it in a temporary folder."""

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tidegate_spark.process.version import VERSION

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    out = tmp_path_factory.mktemp("wheel")
    source = out / "source"
    for part in ("operator", "spark_app"):
        shutil.copytree(ROOT / part, source / part, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    code = "from hatchling.build import build_wheel; import sys; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(out)], cwd=source, check=True, capture_output=True)
    (built,) = out.glob("*.whl")
    return zipfile.ZipFile(built)


def test_the_wheel_holds_the_two_import_packages_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"tidegate", "tidegate_spark"}


def test_the_wheel_offers_the_extras_operator_spark_writer_and_dev(wheel: zipfile.ZipFile) -> None:
    (metadata,) = [name for name in wheel.namelist() if name.endswith("/METADATA")]
    lines = wheel.read(metadata).decode().splitlines()
    assert {line.split(": ")[1] for line in lines if line.startswith("Provides-Extra")} == {
        "operator",
        "spark",
        "writer",
        "dev",
    }


def test_what_the_library_writes_into_manifests_is_the_distributions_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == VERSION
