"""The entry point with configuration that is too long for a variable: real processes, as the kubelet starts them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tidegate_spark
from tidegate_spark.contract.configuration_protocol import divide, with_rest
from tidegate_spark.contract.protocol import DriverConfig, ExecutorSettings, Storage, Termination, from_json, to_json
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.driver.start import read_config

CONFIG = DriverConfig(
    app="a",
    namespace="n",
    uid="u",
    epoch=7,
    lineage=1,
    pod_name="a-driver",
    main="local:///m.py",
    storage=Storage("s3://b/p"),
    executor=ExecutorSettings(1, "i", "IfNotPresent", "sa", "a-e7", template={"spec": {"containers": []}}),
    args=("x" * 4000,) * 40,
    spark_conf={"spark.my": "value"},
)
KEPT, REST = divide(CONFIG, ())
TEXT = with_rest(KEPT, "a-config-7-0123456789", REST)


def run_driver(folder: Path) -> tuple[int, Termination]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(tidegate_spark.__file__).parents[1]),
        "SPARK_HOME": str(folder),
        "TIDEGATE_TERMINATION_LOG": str(folder / "termination"),
        "TIDEGATE_CONFIG": TEXT,
        "TIDEGATE_CONFIGURATION_FILE": str(folder / "configuration.json"),
    }
    command = [sys.executable, "-S", "-m", "tidegate_spark"]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    return done.returncode, from_json(Termination, (folder / "termination").read_text())


def test_the_whole_is_read_from_the_variable_and_the_file(tmp_path: Path) -> None:
    (tmp_path / "configuration.json").write_text(REST)
    assert read_config(TEXT, str(tmp_path / "configuration.json")) == CONFIG


def test_a_driver_with_forty_arguments_of_four_thousand_characters_comes_up_to_what_its_image_lacks(
    tmp_path: Path,
) -> None:
    (tmp_path / "configuration.json").write_text(REST)
    code, termination = run_driver(tmp_path)
    assert (code, termination.reason) == (1, Reason.APPLICATION_FAILED)
    assert "no PySpark in spec.application.image" in termination.message


@pytest.mark.parametrize("content", ["", REST.replace("local:///m.py", "local:///n.py"), None])
def test_another_configuration_or_none_is_not_taken_and_the_kubelet_does_not_try_again(
    tmp_path: Path, content: str | None
) -> None:
    if content is not None:
        (tmp_path / "configuration.json").write_text(content)
    code, termination = run_driver(tmp_path)
    assert (code, termination.reason, termination.epoch) == (0, Reason.CONFIGURATION_CHANGED, 7)
    assert "Secret a-config-7-0123456789" in termination.message


def test_configuration_of_before_is_read_as_it_was() -> None:
    text = (Path(__file__).parents[2] / "stored_forms/forms/driver-config.json").read_text()
    assert read_config(text) == from_json(DriverConfig, text)


@pytest.mark.parametrize("rest", [None, 3, {}, {"secret": "s"}])
def test_a_rest_that_says_not_where_it_is_is_named(rest: object) -> None:
    with pytest.raises(ValueError, match="TIDEGATE_CONFIG"):
        read_config(to_json({**KEPT, "rest": rest}))
