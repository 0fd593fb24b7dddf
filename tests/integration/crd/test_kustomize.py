"""The recipe with Kustomize makes a new version of each new text. Does I/O."""

import re
from pathlib import Path
from typing import Any

import yaml

from tidegate_testing.kubectl import Kubectl

ROOT = Path(__file__).parents[3]
FILES = ("kustomization.yaml", "names.yaml", "app.yaml")


def write_recipe(folder: Path) -> None:
    """Save the files of the recipe, in the order in which they are shown."""
    text = (ROOT / "docs/recipes.md").read_text()
    section = text[text.index("\n## A script from a ConfigMap\n") :].split("\n## ")[1]
    shown = re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)
    for name, content in zip(FILES, shown, strict=True):
        (folder / name).write_text(content)


def built(kubectl: Kubectl, folder: Path, script: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the ConfigMap and the application that come of a script."""
    (folder / "main.py").write_text(script)
    config_map, app = yaml.safe_load_all(kubectl.run("kustomize", str(folder)))
    return config_map, app


def test_the_application_names_the_config_map_of_its_text_and_another_text_is_another_name(
    api_kubectl: Kubectl, namespace: str, tmp_path: Path
) -> None:
    write_recipe(tmp_path)
    config_map, app = built(api_kubectl, tmp_path, "print(1)\n")
    reference = app["spec"]["application"]["mainFrom"]["configMapKeyRef"]
    assert config_map["data"][reference["key"]] == "print(1)\n"
    assert (config_map["metadata"]["name"], config_map["immutable"]) == (reference["name"], True)
    stored = api_kubectl.create({**app, "metadata": {"name": "count", "namespace": namespace}}, namespace)
    assert stored["spec"]["application"]["mainFrom"] == {"configMapKeyRef": reference}
    _, edited = built(api_kubectl, tmp_path, "print(2)\n")
    assert edited["spec"]["application"]["mainFrom"]["configMapKeyRef"]["name"] != reference["name"]
