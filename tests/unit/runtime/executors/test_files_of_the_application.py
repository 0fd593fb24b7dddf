"""What the program's files and arguments meet in a pod: variables, a root that cannot be written, missing modules."""

from pathlib import Path

import pytest

from tidegate_spark.executors.entry_point import working_directory
from tidegate_spark.process.environment import expanded
from tidegate_spark.process.faults import faults


@pytest.mark.parametrize(
    ("argument", "given"),
    [
        ("--brokers=$(BROKERS)", "--brokers=kafka:9092"),
        ("$(BROKERS),$(BROKERS)", "kafka:9092,kafka:9092"),
        ("$$(BROKERS)", "$(BROKERS)"),
        ("$$$(BROKERS)", "$kafka:9092"),
        ("$(NOBODY)", "$(NOBODY)"),
        ("$BROKERS ${BROKERS} $( $()", "$BROKERS ${BROKERS} $( $()"),
        ("$(BROKERS) $(BROKERS $$(a $$$", "kafka:9092 $(BROKERS $(a $$"),
        ("$(OTHER)", "$(BROKERS)"),
    ],
)
def test_arguments_refer_to_variables_as_in_any_pod(argument: str, given: str) -> None:
    assert expanded([argument], {"BROKERS": "kafka:9092", "OTHER": "$(BROKERS)"}) == (given,)


def test_an_executor_whose_directory_can_be_written_runs_there(tmp_path: Path) -> None:
    assert working_directory(str(tmp_path), str(tmp_path / "work")) == str(tmp_path)


def test_an_executor_of_a_read_only_image_runs_where_spark_can_put_files_and_finds_the_images(tmp_path: Path) -> None:
    image, work = tmp_path / "image", tmp_path / "work"
    (image / "models").mkdir(parents=True)
    (image / "models" / "a.bin").write_bytes(b"model")
    for _ in range(2):  # a container that is started again finds the folder
        directory = Path(working_directory(str(image), str(work), lambda path: path != str(image)))
        assert work in directory.parents
        assert (directory / "models" / "a.bin").read_bytes() == b"model"
    (directory / "sent.py").touch()
    assert not (image / "sent.py").exists()


def test_where_nothing_can_be_prepared_the_executor_runs_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "work").touch()
    assert working_directory(str(tmp_path), str(tmp_path / "work"), lambda path: False) == str(tmp_path)


@pytest.mark.parametrize(
    ("module", "remedy"),
    [
        ("tidegate_testing.apps", "the executors' Python workers do not: name its file in spec.application.pyFiles"),
        ("no_such_module.inside", "into spec.application.image, or name its file there in spec.application.pyFiles"),
    ],
)
def test_a_module_that_is_missing_is_named_with_what_brings_it(module: str, remedy: str) -> None:
    failure = faults.explain(ModuleNotFoundError(f"No module named {module!r}"))
    assert failure.exception == "ModuleNotFoundError"
    assert failure.message.startswith(f"No module named {module!r}. ")
    assert remedy in failure.message


def test_other_errors_of_imports_keep_their_words() -> None:
    assert faults.explain(ImportError("cannot import name 'x'")).message == "cannot import name 'x'"
