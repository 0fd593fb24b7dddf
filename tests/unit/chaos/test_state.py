"""What is changed in a copy of a checkpoint before it is read. Files in a temporary folder."""

import json
from pathlib import Path

from tests.chaos.state import move


def test_a_moved_checkpoint_names_its_own_schemas_and_no_other_s(tmp_path: Path) -> None:
    metadata = tmp_path / "state/0/_metadata/v2/0"
    metadata.parent.mkdir(parents=True)
    written = {"schemas": ["s3a://bucket/apps/lineages/1/main/state/0/_stateSchema/default/0_ab"], "note": "a/state/x"}
    metadata.write_text(f"v2\n{json.dumps(written)}")

    move(tmp_path)

    version, text = metadata.read_text().split("\n")
    assert version == "v2"
    assert json.loads(text) == {
        "schemas": [f"{tmp_path.as_uri()}/state/0/_stateSchema/default/0_ab"],
        "note": "a/state/x",
    }
