"""The process's variables as they were before the script ran, and botocore sessions that read those. Does I/O.

A script sets ``AWS_PROFILE``, ``AWS_ENDPOINT_URL`` or ``HTTPS_PROXY`` for its own inputs while the driver makes clients
for the application's storage. botocore has no one place for what it reads, so a few of its private attributes are set;
``os.environ`` itself stays the script's, whose threads read it at any time.
"""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from botocore.session import Session

_ENVIRONMENT = Path("/proc/self/environ")
"""The variables with which the process was started, whatever it has changed since; in a fork, those of its parent."""
_FILES = {"AWS_CONFIG_FILE": "~/.aws/config", "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials"}


@dataclass(frozen=True, repr=False)
class StartVariables:
    """The variables of a moment; ``repr`` does not show them, because credentials are among them."""

    values: Mapping[str, str]
    proxies: Mapping[str, str]
    """By scheme, and ``no`` for what is reached without one, as ``urllib`` has them."""

    @classmethod
    def read(cls) -> StartVariables:
        """Return those of now."""
        return cls.of(os.environ)

    @classmethod
    def of(cls, values: Mapping[str, str]) -> StartVariables:
        """Return ``values``; a script may change ``HOME`` later, so the places of the files are among them."""
        files = {name: _expanded(values.get(name, default), values) for name, default in _FILES.items()}
        return cls({**values, **files}, _proxies_of(values))

    def bypasses(self, url: str) -> bool:
        """Return whether ``NO_PROXY`` names the host of ``url``."""
        from urllib.request import proxy_bypass  # noqa: PLC0415 - likewise

        return bool(proxy_bypass(urlsplit(url).netloc, dict(self.proxies)))

    def proxies_for(self, url: str) -> dict[str, str]:
        """Return the proxies by which ``url`` is reached, by scheme."""
        return {} if self.bypasses(url) else dict(self.proxies)


def _expanded(path: str, values: Mapping[str, str]) -> str:
    path, home = Template(path).safe_substitute(values), values.get("HOME", "")
    return home + path[1:] if home and path.startswith("~/") else os.path.expanduser(path)


def _proxies_of(values: Mapping[str, str]) -> dict[str, str]:
    """Return what ``urllib.request.getproxies`` does, which reads ``os.environ`` alone."""
    found: dict[str, str] = {}
    for name in sorted(values):  # small letters come last, and decide, as in urllib
        scheme, mark, rest = name.lower().rpartition("_proxy")
        if scheme and mark and not rest:
            found[scheme] = values[name]
    return {scheme: address for scheme, address in found.items() if address}


_noted: list[StartVariables] = []


def note() -> None:
    """Have all later sessions of this process read the variables as they are now."""
    _noted[:] = [StartVariables.read()]


def note_start_of_process() -> None:
    """Have all later sessions read the variables with which this process was started, if none are noted.

    A Python worker has imported the program's modules before it comes to ours, and what they set is set.
    """
    if not _noted:
        _noted[:] = [StartVariables.of(_of_process() or os.environ)]


def _of_process() -> dict[str, str]:
    """Return the variables with which the process was started; none where a program has put its title there."""
    try:
        lines = os.fsdecode(_ENVIRONMENT.read_bytes()).split("\0")
    except OSError:
        return {}
    return dict(line.split("=", 1) for line in lines if "=" in line)


def proxies_for(url: str) -> dict[str, str]:
    """Return the proxies by which the noted variables reach ``url``, by scheme; those of now if none are noted."""
    return (_noted[0] if _noted else StartVariables.read()).proxies_for(url)


def new_session() -> Session:
    """Return a botocore session that reads the noted variables; those of now if none are noted."""
    import botocore.session  # noqa: PLC0415 - boto3 is imported on use: an executor needs it only at its end

    return _session_of(_noted[0]) if _noted else botocore.session.get_session()


def _session_of(variables: StartVariables) -> Session:
    from botocore.config import Config  # noqa: PLC0415 - see new_session
    from botocore.session import Session  # noqa: PLC0415 - likewise

    class StartSession(Session):
        """Reads ``variables`` instead of ``os.environ``, also for the clients that renew credentials."""

        def create_client(self, service_name: Any, *args: Any, **named: Any) -> Any:
            """Return a client with the proxies and the certificates of ``variables``."""
            if named.get("verify") is None:
                bundle = self.get_config_variable("ca_bundle")
                named["verify"] = variables.values.get("REQUESTS_CA_BUNDLE", True) if bundle is None else bundle
            asked = named.pop("config", None) or Config()

            def reached_by(proxies: dict[str, str]) -> Any:
                named["config"] = asked.merge(Config(proxies=proxies))
                return super(StartSession, self).create_client(service_name, *args, **named)

            client = reached_by(dict(variables.proxies))
            # Only a client shows where it leads if no endpoint is named.
            bypasses = variables.proxies and variables.bypasses(client.meta.endpoint_url)
            return reached_by({}) if bypasses else client

        def _add_configured_endpoint_provider(self, client_name: str, config_store: Any) -> None:
            super()._add_configured_endpoint_provider(client_name, config_store)  # type: ignore[misc] # not in the stubs
            config_store.get_config_provider("endpoint_url")._environ = variables.values

        def _create_credential_resolver(self) -> Any:
            resolver = super()._create_credential_resolver()  # type: ignore[misc] # not in the stubs
            for provider in resolver.providers:
                _have_provider_read(provider, variables)
            return resolver

    session = StartSession()
    _have_settings_read(session, variables.values)
    return session


def _have_settings_read(session: Any, values: Mapping[str, str]) -> None:
    from botocore import configprovider  # noqa: PLC0415 - see new_session

    store = session.get_component("config_store")
    chains = configprovider.ConfigChainFactory(session, environ=dict(values))

    def chain_of(name: str, row: tuple[Any, ...]) -> Any:
        properties, variable, default, conversion = row
        return chains.create_config_chain(name, variable, properties, default, conversion)

    for name, row in dict(session.session_var_map).items():
        store.set_config_provider(name, chain_of(name, row))
    of_s3 = {name: chain_of(name, row) for name, row in configprovider.DEFAULT_S3_CONFIG_VARS.items()}
    store.set_config_provider("s3", configprovider.SectionConfigProvider("s3", session, of_s3))


def _have_provider_read(provider: Any, variables: StartVariables) -> None:
    """Have one of the places where credentials are looked for read ``variables``; each renews them as before."""
    from botocore import credentials  # noqa: PLC0415 - see new_session
    from botocore.httpsession import URLLib3Session  # noqa: PLC0415 - likewise

    for attribute in ("environ", "_environ"):
        if hasattr(provider, attribute):
            setattr(provider, attribute, variables.values)
    kind = type(provider)
    if issubclass(kind, credentials.ProcessProvider):
        provider._popen = functools.partial(subprocess.Popen, env=dict(variables.values))
    if issubclass(kind, credentials.AssumeRoleProvider):
        _have_source_profiles_read(provider._profile_provider_builder, variables)
    if issubclass(kind, credentials.AssumeRoleWithWebIdentityProvider) and not provider._disable_env_vars:
        names = provider._CONFIG_TO_ENV_VAR
        provider._get_env_config = lambda key: variables.values.get(names.get(key, ""))
    if issubclass(kind, credentials.InstanceMetadataProvider):
        fetcher = provider._role_fetcher
        fetcher._disabled = variables.values.get("AWS_EC2_METADATA_DISABLED", "false").lower() == "true"
        fetcher._session = URLLib3Session(timeout=fetcher._timeout, proxies=variables.proxies_for(fetcher._base_url))


def _have_source_profiles_read(builder: Any, variables: StartVariables) -> None:
    """Have the profile by which a role is assumed read ``variables`` as well: its providers are made when it is."""
    made = builder.providers

    def providers(*args: Any, **named: Any) -> list[Any]:
        found: list[Any] = made(*args, **named)
        for provider in found:
            _have_provider_read(provider, variables)
        return found

    builder.providers = providers
