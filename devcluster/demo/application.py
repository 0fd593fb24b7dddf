"""The sample's manifest and what it needs around it, for the environment at hand. Reads the manifest; no other I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

SAMPLES = Path(__file__).parents[2] / "spark_app" / "samples"
MANIFEST = SAMPLES / "temperature-control.yaml"
BY_MESSAGES = SAMPLES / "temperature-by-messages.yaml"
"""The same application, whose settings are control messages."""
VARIANTS = SAMPLES / "temperature-as-it-is.yaml", SAMPLES / "temperature-calm.yaml"
"""Two applications that start from one snapshot of it."""
FLIGHTS, FLIGHTS_FROM_DUMP = SAMPLES / "flight-delays.yaml", SAMPLES / "flight-delays-from-dump.yaml"
"""The other sample, and the same once its state is gone."""
BUCKET = "tidegate-demo"


@dataclass(frozen=True)
class Topics:
    """The demo's topics. They are deleted and made again by each demo."""

    readings: str = "readings"
    settings: str = "settings"
    """Empty where settings are control messages."""
    decisions: str = "decisions"

    @classmethod
    def on(cls, *, own: bool, by_messages: bool = False) -> Topics:
        """Return the sample's own names for a broker of our own, and names that nobody else has for a foreign one.

        Where settings are messages, both topics are others: that application runs beside the first one, and makes no
        topic again that the first one reads.
        """
        named = cls("readings-by-messages", "", "decisions-by-messages") if by_messages else cls()
        foreign = {option: f"{BUCKET}-{topic}" for option, topic in named.options().items()}
        return named if own else replace(named, **foreign)

    def options(self) -> dict[str, str]:
        """Return the sample's options that name them."""
        named = {"readings": self.readings, "settings": self.settings, "decisions": self.decisions}
        return {option: topic for option, topic in named.items() if topic}

    @property
    def partitions(self) -> dict[str, int]:
        """Return how many partitions each has."""
        counts = {self.readings: 4, self.settings: 4, self.decisions: 2}
        return {topic: count for topic, count in counts.items() if topic}


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
        return f"{self._checkpoint()}/commits/"

    def offsets(self) -> str:
        """Return the prefix of the objects that say where each batch ends in its sources."""
        return f"{self._checkpoint()}/offsets/"

    def _checkpoint(self) -> str:
        return f"apps/{self.namespace}/{self.name}/lineages/1/decisions"


def committed_batches(keys: Iterable[str]) -> list[int]:
    """Return the batches that objects below a ``commits/`` or ``offsets/`` prefix stand for.

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
    models = spec.get("control", {}).get("models", {})
    if "allowedPrefixes" in models:
        models["allowedPrefixes"] = [
            it.replace(f"s3://{BUCKET}/", f"s3://{bucket}/") for it in models["allowedPrefixes"]
        ]
    return Application(manifest)


def _options(arguments: Iterable[str]) -> dict[str, str]:
    """Return the values of options by name, empty for one that has none."""
    parted = (argument.removeprefix("--").partition("=") for argument in arguments)
    return {name: value for name, _, value in parted}


def build_surroundings(application: Application, *, access_key: str, secret_key: str) -> list[dict[str, Any]]:
    """Return the namespace, and in it the Secret with which the application reaches its storage."""
    secret = application.manifest["spec"]["storage"]["credentialsSecretRef"]["name"]
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": application.namespace}},
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": secret, "namespace": application.namespace},
            "stringData": {"AWS_ACCESS_KEY_ID": access_key, "AWS_SECRET_ACCESS_KEY": secret_key},
        },
    ]
