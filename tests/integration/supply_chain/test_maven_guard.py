"""Maven uses what the lock lists and nothing else: a plugin with another hash is never loaded.

Real Maven, a repository of files, and a plugin that leaves a trace when it runs. Nothing is fetched from anywhere.
"""

import hashlib
import shutil
import subprocess
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from devcluster import paths

MAVEN = paths.ROOT / "images" / "jars" / "maven.sh"
REFUSED = 3

_MOJO = """
package example;
public class TraceMojo extends org.apache.maven.plugin.AbstractMojo {
  public void execute() {
    try {
      java.nio.file.Files.createFile(java.nio.file.Path.of(System.getProperty("trace")));
    } catch (java.io.IOException error) {
      throw new IllegalStateException(error);
    }
  }
}
"""
_DESCRIPTOR = """<plugin>
  <name>trace</name><groupId>example</groupId><artifactId>trace-maven-plugin</artifactId><version>1</version>
  <goalPrefix>trace</goalPrefix>
  <mojos><mojo>
    <goal>leave</goal><implementation>example.TraceMojo</implementation><language>java</language>
    <instantiationStrategy>per-lookup</instantiationStrategy>
  </mojo></mojos>
</plugin>"""
_POM = """<project>
  <modelVersion>4.0.0</modelVersion><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>
  <packaging>{packaging}</packaging>{more}
</project>"""


@dataclass(frozen=True)
class World:
    folder: Path

    @property
    def repository(self) -> Path:
        return self.folder / "registry"

    @property
    def lock(self) -> Path:
        return self.folder / "maven.lock"

    @property
    def trace(self) -> Path:
        return self.folder / "trace"

    def maven(self, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the plugin by the script of the images."""
        options = [f"--settings={self.folder / 'settings.xml'}", f"-Dmaven.repo.local={self.folder / 'local'}"]
        command: list[str | Path] = [
            "sh",
            MAVEN,
            self.lock,
            *options,
            f"--file={self.folder / 'pom.xml'}",
            f"-Dtrace={self.trace}",
        ]
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), **variables}
        goal = "example:trace-maven-plugin:1:leave"
        return subprocess.run([*command, goal], env=environment, capture_output=True, text=True, check=False)

    def publish(self, group: str, name: str, version: str, packaging: str, jar: Path | None) -> None:
        place = self.repository / group.replace(".", "/") / name / version
        place.mkdir(parents=True)
        pom = _POM.format(group=group, name=name, version=version, packaging=packaging, more="")
        files = {"pom": pom.encode(), **({"jar": jar.read_bytes()} if jar else {})}
        for kind, content in files.items():
            file = place / f"{name}-{version}.{kind}"
            file.write_bytes(content)
            file.with_name(f"{file.name}.sha1").write_text(hashlib.sha1(content).hexdigest())


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the jar of a plugin that makes a file when it runs."""
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "TraceMojo.java").write_text(_MOJO)
    libraries = "/usr/share/maven/lib/*"
    command: list[str | Path] = [
        "javac",
        "--release",
        "11",
        "-cp",
        libraries,
        "-d",
        folder / "classes",
        folder / "TraceMojo.java",
    ]
    subprocess.run([*command, folder / "TraceMojo.java"], check=True, capture_output=True)
    jar = folder / "plugin.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("META-INF/maven/plugin.xml", _DESCRIPTOR)
        archive.write(folder / "classes" / "example" / "TraceMojo.class", "example/TraceMojo.class")
    return jar


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory, plugin: Path) -> World:
    """Return a registry with the plugin and what Maven gives to each plugin; a first run has written the lock."""
    folder = tmp_path_factory.mktemp("first")
    made = World(folder)
    empty = folder / "empty.jar"
    zipfile.ZipFile(empty, "w").close()
    made.publish("example", "trace-maven-plugin", "1", "maven-plugin", plugin)
    made.publish("org.codehaus.plexus", "plexus-utils", "1.1", "jar", empty)
    (folder / "settings.xml").write_text("<settings/>")
    sites = "".join(
        f"<{kind}ies><{kind}y><id>central</id><url>file://{made.repository}</url></{kind}y></{kind}ies>"
        for kind in ("repositor", "pluginRepositor")
    )
    pom = _POM.format(group="dev.tidegate", name="project", version="1", packaging="pom", more=sites)
    (folder / "pom.xml").write_text(pom)
    done = made.maven(TIDEGATE_LOCK="write")
    assert done.returncode == 0, done.stdout + done.stderr
    made.trace.unlink()
    return made


@pytest.fixture
def world(tmp_path: Path, first: World) -> World:
    """Return a copy: what was fetched lies in its local repository."""
    return World(shutil.copytree(first.folder, tmp_path / "world"))


def test_a_plugin_that_is_as_the_lock_says_runs(world: World) -> None:
    done = world.maven()
    assert done.returncode == 0, done.stdout + done.stderr
    assert world.trace.exists()


def test_the_lock_lists_the_plugin_and_what_maven_gives_to_it_with_their_poms(world: World) -> None:
    assert {line.split("  ")[1] for line in world.lock.read_text().splitlines()} == {
        "example:trace-maven-plugin:jar:1",
        "example:trace-maven-plugin:pom:1",
        "org.codehaus.plexus:plexus-utils:jar:1.1",
    }


@pytest.mark.parametrize("kind", ["plugin:jar", "plugin:pom", "plexus-utils:jar"])
def test_a_lock_with_another_hash_ends_maven_before_the_plugin_runs(world: World, kind: str) -> None:
    lines = world.lock.read_text().splitlines()
    world.lock.write_text("".join(f"{'0' * 64 if kind in line else line[:64]}{line[64:]}\n" for line in lines))
    done = world.maven()
    assert done.returncode == REFUSED
    assert f"{kind}:1" in done.stderr
    assert not world.trace.exists()


def test_a_file_that_was_exchanged_in_the_local_repository_ends_maven_before_the_plugin_runs(world: World) -> None:
    (jar,) = (world.folder / "local" / "example").rglob("*.jar")
    with zipfile.ZipFile(jar, "a") as archive:
        archive.writestr("added", "by somebody")
    done = world.maven()
    assert done.returncode == REFUSED
    assert not world.trace.exists()


def test_what_the_lock_does_not_list_ends_maven_before_the_plugin_runs(world: World) -> None:
    lines = world.lock.read_text().splitlines(keepends=True)
    world.lock.write_text("".join(line for line in lines if "plexus-utils:jar" not in line))
    done = world.maven()
    assert done.returncode == REFUSED
    assert "refused: org.codehaus.plexus:plexus-utils:jar:1.1 is not in" in done.stderr
    assert not world.trace.exists()


def test_without_a_lock_maven_does_nothing(world: World) -> None:
    world.lock.unlink()
    assert world.maven().returncode != 0
    assert not world.trace.exists()
