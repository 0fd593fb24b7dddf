"""The commands of docs/development.md fit each other, the sample's manifest and the code that they call. Runs sed."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster import cluster, images, s3

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "development.md").read_text()


@pytest.fixture(scope="module")
def recipe() -> str:
    """Return the commands for an application without the demo."""
    found = re.search(r"## An application without the demo\n.*?```sh\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def applied(recipe: str) -> dict[str, Any]:
    """Return the manifest as sed leaves it."""
    found = re.search(r"^sed '(.+?)' (\S+) \| kubectl apply", recipe, re.MULTILINE)
    assert found is not None
    made = subprocess.run(["sed", found[1], ROOT / found[2]], check=True, capture_output=True, text=True).stdout
    manifest: dict[str, Any] = yaml.safe_load(made)
    return manifest


def test_the_application_is_in_the_namespace_with_the_bucket_and_the_secret_that_are_made(
    recipe: str, applied: dict[str, Any]
) -> None:
    storage, namespace = applied["spec"]["storage"], applied["metadata"]["namespace"]
    bucket = re.search(r'ensure_bucket\(Cluster\("dev"\), "(.+?)"\)', recipe)
    assert bucket is not None
    assert storage["uri"].startswith(f"s3://{bucket[1]}/")
    assert f"kubectl create namespace {namespace}\n" in recipe
    assert f"kubectl create secret generic {storage['credentialsSecretRef']['name']} --namespace {namespace} " in recipe
    assert f"kubectl wait sapp/{applied['metadata']['name']} --namespace {namespace} " in recipe


def test_the_images_are_those_that_are_built(recipe: str, applied: dict[str, Any]) -> None:
    tag = re.search(r"--set image\.tag=(\S+)", recipe)
    values = yaml.safe_load((ROOT / "charts" / "tidegate" / "values.yaml").read_text())
    assert tag is not None
    built = {image.name for image in images.IMAGES}
    assert {f"{values['image']['repository']}:{tag[1]}", applied["spec"]["application"]["image"]} <= built


def test_what_makes_the_bucket_calls_what_there_is(recipe: str) -> None:
    script = re.search(r"\$PYTHON -c '(.+?)'\)", recipe, re.DOTALL)
    assert script is not None
    calls = compile(script[1], "recipe", "exec").co_names
    assert {"ensure_bucket", "s3_keys", "secret_key"} <= set(calls)
    assert (callable(s3.ensure_bucket), isinstance(cluster.Cluster.s3_keys, property)) == (True, True)
