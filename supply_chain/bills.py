"""Write bills of materials as CycloneDX: ``python -m supply_chain.bills OUT --layout LAYOUT --image TAG``.

They are of images, and of our jar in them. Runs in the environment of locks/sbom.lock, which ``make sbom`` makes. Each
bill is validated against CycloneDX's schema before it is written. Reads the checkout and an OCI layout, and writes
into OUT.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from supply_chain.contents import Contents, Distribution, Jar, Package, read_image

ROOT = Path(__file__).resolve().parents[1]
JARS = ROOT / "images" / "jars"
OWN_JAR = "tidegate-spark.jar"
COMPILED_AGAINST = ("compile", "s3a", "kafka")
Coordinates = tuple[str, str, str]

_FILE = re.compile(r"(?P<name>.+?)-(?P<version>\d[\w.+-]*)\.jar")


def of_image(name: str, contents: Contents, published: Mapping[str, Coordinates]) -> Bom:
    """Return the bill of an image; ``published`` has by hash what jars were fetched as, which they need not say."""
    bill = _bill(name, ComponentType.CONTAINER, contents.manifest.removeprefix("sha256:"))
    bill.components.update(_debian(package) for package in contents.packages)
    bill.components.update(_python(distribution) for distribution in contents.distributions)
    bill.components.update(_jar(jar, published.get(jar.sha256) or jar.coordinates) for jar in contents.jars)
    return _joined(bill)


def of_own_jar(digest: str, published: Mapping[str, Coordinates]) -> Bom:
    """Return the bill of our own jar: what it was compiled against, none of which is in it."""
    bill = _bill(OWN_JAR, ComponentType.LIBRARY, digest)
    for name in COMPILED_AGAINST:
        for line in (JARS / name / "SHA256SUMS").read_text().splitlines():
            digest, file = line.split("  ")
            bill.components.add(_jar(Jar(file, digest, None), published[digest], ComponentScope.EXCLUDED))
    return _joined(bill)


def published() -> dict[str, Coordinates]:
    """Return by hash what Maven fetched: group, name and version of each jar in the lock."""
    lines = (line.split("  ") for line in (JARS / "maven.lock").read_text().splitlines())
    jars = ((digest, artifact.split(":")) for digest, artifact in lines)
    return {digest: (parts[0], parts[1], parts[-1]) for digest, parts in jars if parts[2] == "jar"}


def write(bill: Bom, target: Path) -> None:
    """Write a bill as JSON.

    Raises:
        ValueError: it does not fit the schema of CycloneDX. Then nothing is written.
    """
    text = JsonV1Dot6(bill).output_as_string(indent=1)
    problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if problem:
        raise ValueError(f"{target.name} does not fit the schema: {problem}")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def _bill(name: str, kind: ComponentType, digest: str) -> Bom:
    bill = Bom()
    bill.metadata.component = Component(name=name, type=kind, bom_ref="root", hashes=[_sha256(digest)])
    return bill


def _joined(bill: Bom) -> Bom:
    root = bill.metadata.component
    assert root is not None, "every bill is of something"
    bill.register_dependency(root, bill.components)
    return bill


def _debian(package: Package) -> Component:
    qualifiers = {"arch": package.architecture, "distro": "debian-12"}
    purl = PackageURL("deb", "debian", package.name, package.version, {**qualifiers, "upstream": package.source})
    return Component(name=package.name, version=package.version, purl=purl, bom_ref=str(purl))


def _python(found: Distribution) -> Component:
    purl = PackageURL("pypi", None, found.name, found.version)
    places = [Property(name="tidegate:place", value=found.place)]
    return Component(
        name=found.name, version=found.version, purl=purl, bom_ref=f"{purl}#{found.place}", properties=places
    )


def _jar(jar: Jar, known: Coordinates | None, scope: ComponentScope = ComponentScope.REQUIRED) -> Component:
    file = Path(jar.path).name
    named = _FILE.fullmatch(file)
    group, name, version = known or (None, *(named.group("name", "version") if named else (file, None)))
    return Component(
        group=group,
        name=name,
        version=version,
        purl=PackageURL("maven", group, name, version) if known else None,
        bom_ref=jar.path,
        scope=scope,
        hashes=[_sha256(jar.sha256)],
        properties=[Property(name="tidegate:place", value=jar.path)],
    )


def _sha256(digest: str) -> HashType:
    return HashType(alg=HashAlgorithm.SHA_256, content=digest)


def main(arguments: Iterable[str]) -> int:
    """Write the bills that are asked for; say which."""
    parser = argparse.ArgumentParser(prog="python -m supply_chain.bills", description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--layout", type=Path, help="an OCI layout with the images")
    parser.add_argument("--image", action="append", default=[], help="a tag of the layout; may be repeated")
    asked = parser.parse_args(list(arguments))
    known = published()
    own: set[str] = set()
    for tag in asked.image:
        contents = read_image(asked.layout, tag)
        write(of_image(tag, contents, known), asked.out / f"image-{tag}.cdx.json")
        own |= {jar.sha256 for jar in contents.jars if jar.path.endswith(f"/{OWN_JAR}")}
    if len(own) > 1:
        raise ValueError(
            f"the images hold different jars of ours ({', '.join(sorted(own))}): build them again, together"
        )
    for digest in own:
        write(of_own_jar(digest, known), asked.out / "jar-tidegate-spark.cdx.json")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
