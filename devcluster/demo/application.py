"""The sample's manifest and what it needs around it, for the environment at hand. Reads the manifest; no other I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

SAMPLES = Path(__file__).parents[2] / "spark_app" / "samples"
MANIFEST = SAMPLES / "temperature-control.yaml"
VARIANTS = SAMPLES / "temperature-as-it-is.yaml", SAMPLES / "temperature-calm.yaml"
"""Two applications that begin with one snapshot of it."""
FLIGHTS, FLIGHTS_FROM_DUMP = SAMPLES / "flight-delays.yaml", SAMPLES / "flight-delays-from-dump.yaml"
"""The other sample, and the same once its state is gone."""
BUCKET = "tidegate-demo"


@dataclass(frozen=True)
class Topics:
    """The demo's topics. They are deleted and made anew by each demo."""

    readings: str = "readings"
    settings: str = "settings"
    decisions: str = "decisions"

    @classmethod
    def on(cls, *, own: bool) -> Topics:
        """Return the sample's own names for a broker of our own, and names that nobody else has for a foreign one."""
        return cls() if own else cls(**{name: f"{BUCKET}-{name}" for name in cls().options()})

    def options(self) -> dict[str, str]:
        """Return the sample's options that name them."""
        return {"readings": self.readings, "settings": self.settings, "decisions": self.decisions}

    @property
    def partitions(self) -> dict[str, int]:
        """Return how many partitions each has."""
        return {self.readings: 4, self.settings: 4, self.decisions: 2}


@dataclass(frozen=True)
class Application:
    """Names that the demo needs of the application."""

    manifest: dict[str, Any]

    @property
    def name(self) -> str:
        """The resource's name."""
        return str(self.manifest["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """The resource's namespace."""
        return str(self.manifest["metadata"]["namespace"])

    def option(self, name: str) -> str:
        """Return an option of the script, empty if it is not given."""
        return _options(self.manifest["spec"]["application"]["args"]).get(name, "")

    @property
    def driver_pod(self) -> str:
        """The driver pod's name."""
        return f"{self.name}-driver"

    def commits(self) -> str:
        """Return the prefix of the objects that say which batches are committed."""
        return f"apps/{self.namespace}/{self.name}/lineages/1/decisions/commits/"


def committed_batches(keys: Iterable[str]) -> list[int]:
    """Return the batches that objects below a ``commits/`` prefix stand for.

    Hadoop's connector makes an empty object for the folder itself, and files on their way have other names: both are
    there before anything is committed.
    """
    names = (key.rpartition("/")[2] for key in keys)
    return sorted(int(name) for name in names if name.isdigit())


def build_application(  # noqa: PLR0913 - each is named, and has a place of its own in the manifest
    *,
    image: str,
    endpoint: str,
    options: Mapping[str, str],
    bucket: str = BUCKET,
    namespace: str = "",
    file: Path = MANIFEST,
) -> Application:
    """Return a manifest with the image and the addresses as pods see them; the rest is as in the file.

    ``file`` is the sample's, or that of a variant of it. ``options`` are those of the script that differ from the
    file's, or are not in it: ``brokers``, and whatever else.
    """
    manifest: dict[str, Any] = yaml.safe_load(file.read_text())
    spec = manifest["spec"]
    if namespace:
        manifest["metadata"]["namespace"] = namespace
    spec["application"]["image"] = image
    given = {**_options(spec["application"]["args"]), **options}
    spec["application"]["args"] = [f"--{name}={value}" if value else f"--{name}" for name, value in given.items()]
    spec["storage"] |= {"uri": f"s3://{bucket}/apps", "endpoint": endpoint}
    return Application(manifest)


def _options(arguments: Iterable[str]) -> dict[str, str]:
    """Return the values of options by name, empty for one that has none."""
    parted = (argument.removeprefix("--").partition("=") for argument in arguments)
    return {name: value for name, _, value in parted}


def build_surroundings(application: Application, *, access_key: str, secret_key: str) -> list[dict[str, Any]]:
    """Return the namespace, and in it the Secret with which the application reaches its storage."""
    secret = application.manifest["spec"]["storage"]["credentialsSecret"]["name"]
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": application.namespace}},
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": secret, "namespace": application.namespace},
            "stringData": {"AWS_ACCESS_KEY_ID": access_key, "AWS_SECRET_ACCESS_KEY": secret_key},
        },
    ]
