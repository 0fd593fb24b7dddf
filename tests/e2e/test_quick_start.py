"""The page "Quick start", typed as it stands: its files saved, its commands run one after the other by a shell."""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tidegate_testing.waiting import wait_for
from tidegate_testing.world import World

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "quick-start.md"
NAMESPACE = "tidegate-e2e-quick-start"
HEADINGS = ["Write it", "Run it", "Change it", "Delete it"]
SECONDS = 900
"""What a section may take: its own ``kubectl wait`` ends before."""


def replaced(world: World) -> Mapping[str, str]:
    """What the page says for a reader to replace -> what this cluster has."""
    here = world.environment
    return {
        "registry.example.com/tidegate-spark:dev": here.image_spark,
        "http://minio.storage:9000": here.s3_endpoint_pods,
        "s3://streams/": f"s3://{world.bucket}/",
        "AWS_ACCESS_KEY_ID=…": f"AWS_ACCESS_KEY_ID={here.s3_access_key}",
        "AWS_SECRET_ACCESS_KEY=…": f"AWS_SECRET_ACCESS_KEY={here.s3_secret_key}",
        "kubectl create namespace shop": "true",  # the test has made it, and takes it away
        "--namespace shop": f"--namespace {NAMESPACE}",
    }


def sections(page: str) -> dict[str, str]:
    """Return the page's sections by their headings."""
    _, *rest = re.split(r"^## (.+)$", page, flags=re.MULTILINE)
    return dict(zip(rest[::2], rest[1::2], strict=True))


class Reader:
    """Somebody at a shell, in a folder of their own, whose kubeconfig they may change."""

    def __init__(self, folder: Path, world: World) -> None:
        self._folder = folder
        self._config = folder / "kubeconfig"
        self._config.write_bytes(world.environment.kubeconfig.read_bytes())
        self._kubectl = world.kubectl.binary

    def follow(self, section: str) -> str:
        """Save a section's files, run its commands until one fails, and return what they printed."""
        for name, content in re.findall(r"Save as `(\S+?)`.*?```\w+\n(.*?)```", section, re.DOTALL):
            (self._folder / name).write_text(content)
        # The page changes the program by hand.
        for old, new, name in re.findall(r"Change `([^`]+)` to `([^`]+)` in `([^`]+)`", section):
            program = self._folder / name
            assert old in program.read_text(), program.read_text()
            program.write_text(program.read_text().replace(old, new))
        return self._run("\n".join(re.findall(r"```sh\n(.*?)```", section, re.DOTALL)))

    def _run(self, commands: str) -> str:
        path = f"{self._kubectl.parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-euxo", "pipefail", "-c", commands],
            cwd=self._folder,
            env={"PATH": path, "HOME": str(self._folder), "KUBECONFIG": str(self._config)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout


@pytest.fixture
def page(world: World) -> Iterator[dict[str, str]]:
    """The page's sections, for this cluster."""
    world.make_namespace(NAMESPACE)
    text = PAGE.read_text()
    for named, ours in replaced(world).items():
        assert named in text, f"{PAGE} no longer has {named}"
        text = text.replace(named, ours)
    yield sections(text)
    world.delete_apps(NAMESPACE)


@pytest.mark.long  # what each command does is proven by the tests of its feature
def test_the_quick_start_works_as_it_is_written(world: World, page: dict[str, str], tmp_path: Path) -> None:
    assert [heading for heading in page if heading in HEADINGS] == HEADINGS
    reader = Reader(tmp_path, world)
    world.kubectl.delete("Secret", "storage-credentials", NAMESPACE)  # the reader makes it

    reader.follow(page["What you need"])
    reader.follow(page["Write it"])
    run = reader.follow(page["Run it"])
    change = reader.follow(page["Change it"])
    delete = reader.follow(page["Delete it"])

    assert re.search(r"tidegate.dev/counts +Running +True +1/1 ", run), run
    assert change.count("streamingapp.tidegate.dev/counts condition met") == len(["stable", "upgraded"]), change
    assert 'streamsnapshot.tidegate.dev "first" deleted' in delete, delete
    assert not world.kubectl.list("sapp,snap", NAMESPACE)
    # The last pod is deleted in the background, as the command's end does not wait for it.
    wait_for("the end of the pods", lambda: not world.kubectl.list("pods", NAMESPACE), timeout=300)
    left = world.s3.list_objects_v2(Bucket=world.bucket, Prefix=f"apps/{NAMESPACE}/counts/").get("Contents", [])
    assert [found["Key"] for found in left] == []
