"""How this machine's package clients (apt, pip, Maven) reach their registries, for the RUN steps of an image build.

Mirrors, proxies and a company's own certificates are the machine's business: they are mounted for the time of a build
and never part of an image. Reads the machine's configuration, writes the files to mount.
"""

import configparser
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

_CERTIFICATES = Path("/run/host-certificates.pem")
_JAVA_CERTIFICATES = Path("/run/host-certificates.jks")
_PIP_CACHE = Path("/run/host-pip-cache")

_SOURCES = (Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list"))
_PIP = ("/etc/pip.conf", "~/.pip/pip.conf", "~/.config/pip/pip.conf")
_PIP_VARIABLES = ("index_url", "extra_index_url", "trusted_host", "proxy", "default_timeout")
_MAVEN = ("~/.m2/settings.xml", "/etc/maven/settings.xml")
_BUNDLE_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_PROXY_VARIABLES = ("http_proxy", "https_proxy", "no_proxy", "ftp_proxy", "all_proxy")


def proxies(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the proxy variables that are set, in either case; image builds know them as undeclared arguments."""
    names = [*_PROXY_VARIABLES, *(name.upper() for name in _PROXY_VARIABLES)]
    return {name: variables[name] for name in names if variables.get(name)}


def mounts(folder: Path, variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Write the configuration into ``folder``; return what to mount where, as source to ``target[:options]``.

    What this machine does not have is left out: a machine without any special configuration gets hardly a mount. What
    pip and Maven download is kept in ``folder``, for the builds to come.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = {**_apt(folder), **_pip(folder, variables), **_maven(folder)}
    bundle = _bundle(variables)
    if bundle:
        found[str(bundle)] = f"{_CERTIFICATES}:ro"
    return found


def apt_sources() -> Path | None:
    """Return the file that names this machine's Debian mirror, None if it has none."""
    return next((s for s in _SOURCES if s.is_file() and s.stat().st_size), None)


def is_debian_12(os_release: Path = Path("/etc/os-release")) -> bool:
    """Say whether this machine's mirror serves the images' Debian release."""
    return os_release.is_file() and "VERSION_CODENAME=bookworm" in os_release.read_text().split()


def apt_settings() -> str:
    """Return how apt on this machine fetches (proxies, retries, checks), in apt's own syntax; empty without apt."""
    if not shutil.which("apt-config"):
        return ""
    return subprocess.run(["apt-config", "dump", "Acquire"], check=True, capture_output=True, text=True).stdout


def _apt(folder: Path) -> dict[str, str]:
    settings = folder / "apt.conf"
    settings.write_text(f'{apt_settings()}Acquire::https::CaInfo "{_CERTIFICATES}";\n')
    found = {str(settings): "/etc/apt/apt.conf.d/99host:ro"}
    sources = apt_sources()
    if sources and is_debian_12():
        found[str(sources)] = f"{sources}:ro"
    return found


def _pip(folder: Path, variables: Mapping[str, str]) -> dict[str, str]:
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(Path(name).expanduser() for name in _PIP)
    if not settings.has_section("global"):
        settings.add_section("global")
    for name in _PIP_VARIABLES:
        value = variables.get(f"PIP_{name.upper()}")
        if value:
            settings.set("global", name.replace("_", "-"), value)
    if _bundle(variables):
        settings.set("global", "cert", str(_CERTIFICATES))
    cache = folder / "pip"
    cache.mkdir(exist_ok=True)
    settings.set("global", "cache-dir", str(_PIP_CACHE))
    target = folder / "pip.conf"
    with target.open("w") as file:
        settings.write(file)
    return {str(target): "/etc/pip.conf:ro", str(cache): str(_PIP_CACHE)}


def _maven(folder: Path) -> dict[str, str]:
    found = {}
    settings = next((p for p in (Path(name).expanduser() for name in _MAVEN) if p.is_file()), None)
    if settings:
        found[str(settings)] = "/root/.m2/settings.xml:ro"
    repository = folder / "maven"
    repository.mkdir(exist_ok=True)
    found[str(repository)] = "/root/.m2/repository"
    java = Path("/etc/ssl/certs/java/cacerts")
    if java.is_file():
        found[str(java)] = f"{_JAVA_CERTIFICATES}:ro"
        start = folder / "mavenrc"
        start.write_text(f'MAVEN_OPTS="${{MAVEN_OPTS:-}} -Djavax.net.ssl.trustStore={_JAVA_CERTIFICATES}"\n')
        found[str(start)] = "/root/.mavenrc:ro"
    return found


def _bundle(variables: Mapping[str, str]) -> Path | None:
    named = [Path(variables[name]) for name in _BUNDLE_VARIABLES if variables.get(name)]
    return next((p for p in [*named, Path("/etc/ssl/certs/ca-certificates.crt")] if p.is_file()), None)
