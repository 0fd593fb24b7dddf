"""Which text of a mounted program a pod's containers run."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tidegate_spark.driver.mounted_main import kept_main


@dataclass(frozen=True)
class Pod:
    """A pod's two directories."""

    mounted: Path
    copies: Path

    def edit(self, text: str) -> None:
        """Do what the kubelet does after an edit of the ConfigMap."""
        (self.mounted / "count.py").write_text(text)

    def start(self) -> str:
        """Start a container, and return the text that it runs."""
        main = kept_main(f"local://{self.mounted}/count.py", str(self.mounted), str(self.copies))
        return Path(main.removeprefix("local://")).read_text()


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    made = Pod(tmp_path / "mounted", tmp_path / "copies")
    made.mounted.mkdir()
    made.copies.mkdir()
    made.edit("first")
    return made


def test_a_container_that_starts_again_runs_the_text_that_the_pod_started_from(pod: Pod) -> None:
    assert pod.start() == "first"
    pod.edit("second")
    assert pod.start() == "first"


def test_an_edit_while_the_program_runs_does_not_reach_the_file_that_it_runs(pod: Pod) -> None:
    running = kept_main(f"local://{pod.mounted}/count.py", str(pod.mounted), str(pod.copies))
    pod.edit("second")
    assert Path(running.removeprefix("local://")).read_text() == "first"


def test_a_copy_that_was_cut_off_is_made_anew(pod: Pod) -> None:
    (pod.copies / "count.py.partial").write_text("fir")
    assert pod.start() == "first"
    assert [each.name for each in pod.copies.iterdir()] == ["count.py"]


def test_a_pod_whose_config_map_is_gone_runs_what_it_started_from(pod: Pod) -> None:
    pod.start()
    (pod.mounted / "count.py").unlink()
    assert pod.start() == "first"


@pytest.mark.parametrize("reference", ["local:///opt/app/main.py", "shop.orders", "local:///mounted/no.py"])
def test_any_other_program_is_run_where_it_is(pod: Pod, reference: str) -> None:
    assert kept_main(reference, "/mounted", str(pod.copies)) == reference
    assert not list(pod.copies.iterdir())
