"""The layout's own rules, which no linter states. Reads the checkout's files."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def tracked_files() -> list[str]:
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    return listing.stdout.splitlines()


def test_the_operator_folder_is_no_package_because_it_would_shadow_the_standard_library() -> None:
    assert not (ROOT / "operator" / "__init__.py").exists()


def test_the_standard_library_operator_is_found_from_the_checkout() -> None:
    found = subprocess.run(
        [sys.executable, "-c", "import operator; print(operator.__file__)"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    assert not found.stdout.startswith(str(ROOT))


def test_the_protocol_needs_only_the_standard_library() -> None:
    code = (
        "import sys; import tidegate_spark.contract.protocol; print(sorted({m.partition('.')[0] for m in sys.modules}))"
    )
    loaded = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(ROOT / "spark_app")},
        check=True,
        capture_output=True,
        text=True,
    )
    outside = set(eval(loaded.stdout)) - sys.stdlib_module_names - {"tidegate_spark", "__main__"}
    assert outside == set(), (
        "tidegate_spark.contract imports these: executors have only the standard library when they read it"
    )


@pytest.mark.parametrize("name", ["utils", "helpers", "manager", "misc"])
def test_no_file_has_a_name_that_says_nothing(name: str) -> None:
    assert [f for f in tracked_files() if Path(f).stem == name] == [], "name these files by what they do"


def test_no_lock_file_names_an_address() -> None:
    named = [f for f in (ROOT / "locks").iterdir() if "://" in f.read_text() or "index-url" in f.read_text()]
    assert named == [], "take the addresses out of these: whoever installs names the index"


def test_every_requirement_is_pinned_by_hash() -> None:
    for lock in (ROOT / "locks").iterdir():
        entries = lock.read_text().replace("\\\n", " ").splitlines()
        unpinned = [e for e in entries if e.strip() and not e.startswith("#") and ("==" not in e or "--hash=" not in e)]
        assert unpinned == [], lock.name
