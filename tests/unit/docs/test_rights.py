"""What the docs say the right to create each kind amounts to is what the operator makes of such an object."""

import re
from pathlib import Path
from typing import Any

import msgspec

from tidegate.api.control_message import ControlMessageSpec
from tidegate.api.stream_snapshot import ExportSpec, StreamSnapshotSpec
from tidegate.app.builders.driver import build_driver_pod
from tidegate.control.builders.message_snapshot import build_message_snapshot
from tidegate.snapshots.builders.export_pod import build_export_pod
from tidegate_testing import plain_yaml
from tidegate_testing.control_observations import message
from tidegate_testing.observations import PLATFORM, app_with, launched
from tidegate_testing.snapshot_observations import APP, begun, snapshot

ROOT = Path(__file__).parents[3]
SECURITY = (ROOT / "SECURITY.md").read_text()
TITLE = "What the right to create each kind amounts to"
THEIRS = "registry/theirs:1"


def section(text: str) -> str:
    found = re.search(rf"^#+ {TITLE}\n(.*?)(?=^#|\Z)", text, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def mounted_secrets(pod: dict[str, Any]) -> set[str]:
    return {volume["secret"]["secretName"] for volume in pod["spec"]["volumes"] if "secret" in volume}


def test_both_pages_name_every_kind_and_the_short_one_leads_to_the_long_one() -> None:
    kinds = {plain_yaml.load(file.read_text())["spec"]["names"]["kind"] for file in (ROOT / "crds").glob("*.yaml")}
    whole = section((ROOT / "docs" / "install.md").read_text())
    assert kinds == set(re.findall(r"^Who may create an? \*\*(\w+)\*\*", whole, re.MULTILINE)), (
        f"the section {TITLE!r} of docs/install.md has 'Who may create a **Kind**' for each kind of crds/"
    )
    assert kinds == set(re.findall(r"\*\*create an? (\w+)\*\*", section(SECURITY))), (
        f"the section {TITLE!r} of SECURITY.md has '**create a Kind**' for each kind of crds/"
    )
    anchor = TITLE.lower().replace(" ", "-")
    assert f"(docs/install.md#{anchor})" in SECURITY
    assert "(SECURITY.md)" in (ROOT / "README.md").read_text()


def test_the_page_names_no_address_to_write_to_that_nobody_reads() -> None:
    assert not re.search(r"\S+@\S+", SECURITY)


def test_who_creates_an_application_chooses_image_account_and_any_secret_of_the_namespace() -> None:
    volume = {"name": "of-others", "secret": {"secretName": "database"}}
    app = app_with(
        {
            "application.image": THEIRS,
            "serviceAccountName": "admin",
            "driver.podTemplate": {"spec": {"volumes": [volume], "containers": [{"name": "beside", "image": THEIRS}]}},
        }
    )
    pod = build_driver_pod(app, epoch=1, lineage=1, platform=PLATFORM)
    assert pod["spec"]["serviceAccountName"] == "admin"
    assert pod["spec"].get("automountServiceAccountToken", True)
    assert {c["image"] for c in pod["spec"]["containers"]} == {THEIRS}
    assert "database" in mounted_secrets(pod)


def test_who_creates_a_snapshot_chooses_an_image_that_has_the_storages_credentials_but_no_token() -> None:
    app = launched(app_with({"storage": {"uri": "s3://streams/apps/", "credentialsSecretRef": {"name": "keys"}}}))
    asked = msgspec.structs.replace(snapshot(begun(app)).spec, export=ExportSpec(image=THEIRS))
    pod = build_export_pod(msgspec.structs.replace(snapshot(begun(app)), spec=asked), app, PLATFORM)
    assert [c["image"] for c in pod["spec"]["containers"]] == [THEIRS]
    assert mounted_secrets(pod) == {"keys"}
    assert pod["spec"]["automountServiceAccountToken"] is False


def test_who_imports_a_snapshot_chooses_an_image_and_a_secret_of_the_namespace_that_it_has_but_no_token() -> None:
    status = begun(APP)
    assert status.storage is not None
    of = msgspec.structs.replace(status.storage, credentials_secret_name="database", service_account_name="admin")
    spec = StreamSnapshotSpec(uri="s3://theirs/manifest.json", export=ExportSpec(image=THEIRS))
    imported = msgspec.structs.replace(snapshot(msgspec.structs.replace(status, app=None, storage=of)), spec=spec)
    pod = build_export_pod(imported, None, PLATFORM)
    assert [c["image"] for c in pod["spec"]["containers"]] == [THEIRS]
    assert mounted_secrets(pod) == {"database"}
    assert pod["spec"]["serviceAccountName"] == "admin"
    assert pod["spec"]["automountServiceAccountToken"] is False


def test_who_creates_a_message_names_no_image_account_or_secret() -> None:
    wishes = {"image": THEIRS, "serviceAccountName": "admin", "credentialsSecretRef": {"name": "database"}}
    made = build_message_snapshot(message(kind="dump-state", payload={"format": "CSV", **wishes}), APP)
    assert made["spec"]["export"] == {"format": "CSV"}
    assert made["spec"].keys() == {"appRef", "deletionPolicy", "export"}
    assert {f.encode_name for f in msgspec.structs.fields(ControlMessageSpec)} == {
        "appRef",
        "type",
        "payload",
        "expirationSeconds",
    }
