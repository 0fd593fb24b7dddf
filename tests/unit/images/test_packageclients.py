"""What a build sees of the machine's package clients."""

import configparser
from pathlib import Path

from devcluster import packageclients


def _pip(folder: Path) -> configparser.ConfigParser:
    read = configparser.ConfigParser(interpolation=None)
    assert read.read(folder / "pip.conf")
    return read


def test_certificates_of_the_machine_are_mounted_outside_the_folder_that_packages_write(tmp_path: Path) -> None:
    bundle = tmp_path / "own.pem"
    bundle.write_text("certificates")
    mounts = packageclients.mounts(tmp_path / "out", {"SSL_CERT_FILE": str(bundle)})
    target = mounts[str(bundle)].partition(":")[0]
    assert not target.startswith("/etc/ssl")
    assert _pip(tmp_path / "out")["global"]["cert"] == target
    assert target in (tmp_path / "out" / "apt.conf").read_text()


def test_what_pip_is_told_by_variables_becomes_its_configuration(tmp_path: Path) -> None:
    packageclients.mounts(tmp_path, {"PIP_INDEX_URL": "mirror/simple", "PIP_DEFAULT_TIMEOUT": "90"})
    assert _pip(tmp_path)["global"]["index-url"] == "mirror/simple"
    assert _pip(tmp_path)["global"]["default-timeout"] == "90"


def test_what_pip_downloads_is_kept_outside_the_image_for_the_next_build(tmp_path: Path) -> None:
    mounts = packageclients.mounts(tmp_path, {})
    assert mounts[str(tmp_path / "pip")] == _pip(tmp_path)["global"]["cache-dir"]


def test_every_mounted_path_exists(tmp_path: Path) -> None:
    assert all(Path(source).exists() for source in packageclients.mounts(tmp_path, {}))


def test_proxies_are_passed_in_the_case_they_are_written_in_and_empty_ones_are_not() -> None:
    variables = {"HTTPS_PROXY": "a:1", "no_proxy": "b", "http_proxy": "", "PATH": "/bin"}
    assert packageclients.proxies(variables) == {"HTTPS_PROXY": "a:1", "no_proxy": "b"}
