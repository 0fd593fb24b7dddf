"""YAML as ``yaml.safe_load`` reads it, by the parser in C: CRDs are long, and many tests read them. Pure."""

from typing import Any

import yaml


def load(text: str) -> Any:
    """Return the only document of a text; raise yaml.YAMLError if it is none."""
    return yaml.load(text, Loader=yaml.CSafeLoader)


def load_all(text: str) -> list[Any]:
    """Return the documents of a text, None for an empty one; raise yaml.YAMLError if one is none."""
    return list(yaml.load_all(text, Loader=yaml.CSafeLoader))
