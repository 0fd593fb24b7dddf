"""Everything that Maven fetches for images and for the broker is pinned: plugins by version, all by hash."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from devcluster import paths

JARS = paths.ROOT / "images" / "jars"
BROKER = paths.ROOT / "devcluster" / "kafka"
SETS = [
    *((pom, pom.with_name("SHA256SUMS"), JARS / "maven.lock") for pom in sorted(JARS.glob("*/pom.xml"))),
    (BROKER / "pom.xml", BROKER / "jars.sha256", BROKER / "maven.lock"),
]
NAMES = [pom.parent.name for pom, _, _ in SETS]
VERSION = re.compile(r"\d+(\.\d+)*")


def locked(lock: Path) -> dict[str, str]:
    """Return the hash of each artifact, group:name:kind:version."""
    return {artifact: digest for digest, artifact in (line.split("  ") for line in lock.read_text().splitlines())}


def test_every_pom_of_the_checkout_is_among_them() -> None:
    found = [p for p in paths.ROOT.rglob("pom.xml") if ".git" not in p.parts]
    assert sorted(found) == sorted(pom for pom, _, _ in SETS)


@pytest.mark.parametrize(("pom", "sums", "lock"), SETS, ids=NAMES)
def test_every_plugin_has_one_version_and_the_lock_has_its_hash(pom: Path, sums: Path, lock: Path) -> None:
    plugins = ET.parse(pom).getroot().findall("./build//plugin")
    assert plugins
    for plugin in plugins:
        version = plugin.findtext("version", "")
        assert VERSION.fullmatch(version), f"{plugin.findtext('artifactId')}: {version or 'no version'}"
        group = plugin.findtext("groupId", "org.apache.maven.plugins")
        assert f"{group}:{plugin.findtext('artifactId')}:jar:{version}" in locked(lock)


@pytest.mark.parametrize(("pom", "sums", "lock"), SETS, ids=NAMES)
def test_every_jar_of_a_set_has_the_hash_that_the_lock_has(pom: Path, sums: Path, lock: Path) -> None:
    files = {f"{name}-{version}.{kind}": digest for (_, name, kind, version), digest in _parts(lock)}
    listed = {name: digest for digest, name in (line.split("  ") for line in sums.read_text().splitlines())}
    assert listed
    assert {name: files.get(name) for name in listed} == listed


@pytest.mark.parametrize(("pom", "sums", "lock"), SETS, ids=NAMES)
def test_every_dependency_has_one_version(pom: Path, sums: Path, lock: Path) -> None:
    root = ET.parse(pom).getroot()
    properties = {f"${{{p.tag}}}": p.text or "" for p in root.findall("./properties/*")}
    versions = [d.findtext("version", "") for d in root.findall("./dependencies/dependency")]
    assert [v for v in versions if not VERSION.fullmatch(properties.get(v, v))] == []


@pytest.mark.parametrize("lock", sorted({lock for _, _, lock in SETS}), ids=lambda lock: str(lock.parent.name))
def test_a_lock_holds_hashes_and_no_address(lock: Path) -> None:
    lines = lock.read_text().splitlines()
    assert [line for line in lines if not re.fullmatch(r"[0-9a-f]{64}  [\w.:+-]+", line)] == []
    assert len(locked(lock)) == len(lines)


@pytest.mark.parametrize("script", ["images/jars/fetch.sh", "devcluster/kafka/jars.py"])
def test_nothing_runs_maven_but_the_script_that_compares(script: str) -> None:
    assert not re.search(r'^\s*mvn |"mvn"', (paths.ROOT / script).read_text(), re.MULTILINE)


def _parts(lock: Path) -> list[tuple[tuple[str, str, str, str], str]]:
    split = [(artifact.split(":"), digest) for artifact, digest in locked(lock).items()]
    # A classifier stands before the version, in the artifact as in the name of its file: none of those here.
    return [((p[0], p[1], p[2], p[3]), digest) for p, digest in split if len(p) == 4]
