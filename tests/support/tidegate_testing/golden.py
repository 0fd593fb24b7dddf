"""What a test compares with a whole object, such as a pod: a YAML file beside the test, which can be written again."""

import difflib
import json
import os
from pathlib import Path
from typing import Any

import yaml

COMMAND = "make golden"
VARIABLE, WRITE = "TIDEGATE_GOLDEN", "write"
FOLDER = "golden"


class _Json(dict[str, Any]):
    """An object that is there as a text: shown as what it says, or a change of it would be one of a long line."""


class _Dumper(yaml.SafeDumper):
    """Writes out whatever is there twice: a reference would hide what an object consists of."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


class _Loader(yaml.SafeLoader):
    """Reads what :class:`_Dumper` writes."""


def _construct_json(loader: yaml.SafeLoader, node: yaml.Node) -> _Json:
    assert isinstance(node, yaml.MappingNode)
    return _Json({str(key): value for key, value in loader.construct_mapping(node, deep=True).items()})


_Dumper.add_representer(_Json, lambda dumper, value: dumper.represent_mapping("!json", value))
_Loader.add_constructor("!json", _construct_json)


def assert_golden(test: str, name: str, value: object) -> None:
    """Assert that a value is what a golden file says, or write the file, if that is what the environment asks for.

    Args:
        test: the file of the test (its ``__file__``).
        name: of the golden file, which is in the folder ``golden`` beside the test.
        value: anything that JSON can say.
    """
    file = Path(test).parent / FOLDER / f"{name}.yaml"
    found = _text_of(_opened(json.loads(json.dumps(value))))
    if os.environ.get(VARIABLE) == WRITE:
        file.parent.mkdir(exist_ok=True)
        file.write_text(found)
        return
    assert file.exists(), f"there is no {file}; `{COMMAND}` writes it"
    wanted = _text_of(yaml.load(file.read_text(), _Loader))
    lines = difflib.unified_diff(
        wanted.splitlines(), found.splitlines(), f"{FOLDER}/{file.name}", "what the test has made", lineterm=""
    )
    assert wanted == found, "\n".join([*lines, f"If this is as it should be, `{COMMAND}` writes it to {file}."])


def _text_of(value: Any) -> str:
    return yaml.dump(value, Dumper=_Dumper, width=116, allow_unicode=True)  # keys are sorted: equal values, equal texts


def _opened(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _opened(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_opened(each) for each in value]
    if isinstance(value, str) and value.startswith("{"):
        try:
            return _Json(_opened(json.loads(value)))
        except ValueError:
            return value
    return value
