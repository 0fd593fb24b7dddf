"""`make sbom` writes bills of materials that fit the schema of CycloneDX, with the hashes of the locks.

The tool is installed by its own lock, as a person's `make sbom` does; the schema comes with it.
"""

import hashlib
import io
import json
import os
import re
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from devcluster import paths

ROOT = paths.ROOT
VALIDATE = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
for path in sys.argv[1:]:
    print(JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(path).read()) or "fits")
"""
STATUS = b"Package: tini\nStatus: install ok installed\nArchitecture: amd64\nVersion: 0.19.0-1\n"
METADATA = b"Metadata-Version: 2.4\nName: kopf\nVersion: 1.45.2\n"


def run(*command: str | Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the bills of the locks, as the script of `make sbom` writes them."""
    folder = tmp_path_factory.mktemp("sbom") / "bills"
    run(ROOT / "supply_chain" / "sbom.sh", folder, "--no-images")
    return folder


@pytest.fixture(scope="module")
def python() -> str:
    """Return the Python of the tool's environment, which that script has made."""
    lock = hashlib.sha256((ROOT / "locks" / "sbom.lock").read_bytes()).hexdigest()[:12]
    return str(paths.cache() / "sbom" / lock / "bin" / "python")


def read(file: Path) -> dict[str, Any]:
    return dict(json.loads(file.read_text()))


def put(blobs: Path, content: bytes) -> str:
    digest = hashlib.sha256(content).hexdigest()
    (blobs / digest).write_bytes(content)
    return f"sha256:{digest}"


@pytest.fixture
def layout(tmp_path: Path) -> Path:
    """Return an OCI layout with an image that holds a Debian package, a distribution and three jars."""
    folder = tmp_path / "oci"
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    files = {
        "var/lib/dpkg/status": STATUS,
        "opt/venv/kopf-1.45.2.dist-info/METADATA": METADATA,
        "jars/tidegate-spark.jar": b"ours",
        "jars/netty-1.2.jar": b"of nobody",
        "jars/renamed.jar": b"known by its hash",
    }
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    manifest = put(blobs, json.dumps({"layers": [{"digest": put(blobs, content.getvalue())}]}).encode())
    named = {"digest": manifest, "annotations": {"org.opencontainers.image.ref.name": "app"}}
    (folder / "index.json").write_text(json.dumps({"manifests": [named]}))
    return folder


@pytest.mark.parametrize("part", ["operator", "spark", "runtime"])
def test_the_bill_of_a_lock_has_each_requirement_with_each_of_its_hashes(out: Path, part: str) -> None:
    found = {
        (c["name"], c["version"]): {h["content"] for e in c["externalReferences"] for h in e.get("hashes", [])}
        for c in read(out / f"python-{part}.cdx.json")["components"]
    }
    lock = (ROOT / "locks" / f"{part}.lock").read_text()
    entries = re.findall(r"^(\S+)==(\S+)((?:.*\\\n)*.*)$", lock, re.MULTILINE)
    assert len(entries) == len(found) > 5
    for name, version, rest in entries:
        assert found[name, version] == set(re.findall(r"sha256:(\w+)", rest))


def test_the_bill_of_an_image_has_its_packages_distributions_and_jars_and_that_of_our_jar_what_it_was_compiled_against(
    out: Path, layout: Path, python: str
) -> None:
    run(python, "-m", "supply_chain.bills", out, "--layout", layout, "--image", "app")
    image, ours = read(out / "image-app.cdx.json"), read(out / "jar-tidegate-spark.cdx.json")
    assert {c["name"]: (c.get("version"), c.get("purl")) for c in image["components"]} == {
        "tini": ("0.19.0-1", "pkg:deb/debian/tini@0.19.0-1?arch=amd64&distro=debian-12&upstream=tini"),
        "kopf": ("1.45.2", "pkg:pypi/kopf@1.45.2"),
        "tidegate-spark.jar": (None, None),
        "netty": ("1.2", None),
        "renamed.jar": (None, None),
    }
    (manifest,) = [m["digest"] for m in read(layout / "index.json")["manifests"]]
    assert f"sha256:{image['metadata']['component']['hashes'][0]['content']}" == manifest
    assert ours["metadata"]["component"]["hashes"][0]["content"] == hashlib.sha256(b"ours").hexdigest()
    sums = "".join((ROOT / "images" / "jars" / name / "SHA256SUMS").read_text() for name in ("compile", "s3a", "kafka"))
    assert {c["hashes"][0]["content"] for c in ours["components"]} == {line.split()[0] for line in sums.splitlines()}
    assert {c["scope"] for c in ours["components"]} == {"excluded"}
    assert all(c["purl"].startswith("pkg:maven/") for c in ours["components"])


def test_each_bill_fits_the_schema_and_one_that_is_spoiled_does_not(
    out: Path, layout: Path, python: str, tmp_path: Path
) -> None:
    run(python, "-m", "supply_chain.bills", out, "--layout", layout, "--image", "app")
    bills = sorted(out.glob("*.cdx.json"))
    assert len(bills) == 5
    assert run(python, "-c", VALIDATE, *bills).splitlines() == ["fits"] * 5
    spoiled = tmp_path / "spoiled.json"
    spoiled.write_text(json.dumps({**read(bills[0]), "components": [{"name": "of no type"}]}))
    assert "fits" not in run(python, "-c", VALIDATE, spoiled)
