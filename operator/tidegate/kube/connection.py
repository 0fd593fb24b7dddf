"""Finds the API server and the credentials for it, from the pod's service account or a kubeconfig. Does I/O.

The official client reads the configuration only: its typed models cost three times the CPU of a plain request.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from kubernetes.aio import config
from kubernetes.aio.client import Configuration

from tidegate.kube import messages
from tidegate.version import VERSION

Answered = Callable[[aiohttp.ClientRequest, int], None]
USER_AGENT = f"tidegate-operator/{VERSION}"
_MOST_HEADERS = 4096
"""The API server answers with a header for each thing that it warns of, 4,096 characters in all: a pod template with a
hundred unknown fields would make its answer one that cannot be read, and the request one that is never answered."""
_DELIVERY_MILLISECONDS = 3000
"""How long what was sent may stay without the other side's receipt before the connection is given up.

Otherwise the kernel would repeat it for minutes, also after the process's end: a write of a leader that is cut off
could arrive long after another one leads. No longer than from the deadline of a leadership to the end of its Lease.
"""


class NoConfigurationError(Exception):
    """Neither in a pod with a service account, nor is there a usable kubeconfig."""


@dataclass(frozen=True, slots=True)
class Connection:
    """A configured way to one API server."""

    configuration: Configuration
    ssl_context: ssl.SSLContext
    loader: Any = None
    """The kubeconfig's loader, which renews tokens of exec plugins; None in a pod."""

    @property
    def server(self) -> str:
        """The API server's address, without a slash at its end."""
        return str(self.configuration.host).rstrip("/")

    async def authorization(self) -> str | None:
        """Return the Authorization header's value, renewed after a rotation; None with certificates."""
        value: str | None = await self.configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        return value

    async def renew_tokens(self) -> None:
        """Renew tokens of exec plugins for ever; returns at once where there is nothing to renew."""
        if self.loader is not None:
            await config.kube_config.refresh_token(self.loader, self.configuration)  # type: ignore[no-untyped-call]

    def session(self, limit: int, answered: Answered | None = None) -> aiohttp.ClientSession:
        """Return an HTTP session whose requests carry our identity; the caller closes it.

        Args:
            limit: the number of connections it may hold open; 0 for any number.
            answered: called with each request and its answer's status, for sessions that somebody else uses.
        """
        server_name = getattr(self.configuration, "tls_server_name", None)

        async def identify(
            request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
        ) -> aiohttp.ClientResponse:
            # Per request and not once: a service account's token is rotated every hour.
            authorization = await self.authorization()
            if authorization:
                request.headers["Authorization"] = authorization
            if server_name:
                request.server_hostname = server_name
            response = await handler(request)
            if answered is not None:
                answered(request, response.status)
            return response

        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=limit, ssl=self.ssl_context, keepalive_timeout=55, socket_factory=_open_socket
            ),
            headers={"User-Agent": USER_AGENT, "Accept": "application/json"},
            # The API server sets no cookies, and a jar is looked through before each request.
            cookie_jar=aiohttp.DummyCookieJar(),
            middlewares=(identify,),
            proxy=getattr(self.configuration, "proxy", None),
            max_headers=_MOST_HEADERS,
        )


async def connect(kubeconfig: Path | None = None) -> Connection:
    """Return the connection of the pod's service account or, outside of pods, of ``$KUBECONFIG`` or ``~/.kube/config``.

    Args:
        kubeconfig: use this file and look nowhere else.

    Raises:
        NoConfigurationError: there is neither, or it cannot be read.
    """
    configuration = Configuration()
    loader = None
    try:
        if kubeconfig is not None:
            raise config.ConfigException(messages.service_account_not_wanted(kubeconfig))
        config.load_incluster_config(configuration)  # type: ignore[no-untyped-call]
    except config.ConfigException as not_in_pod:
        try:
            loader = await config.load_kube_config(  # type: ignore[no-untyped-call]
                config_file=str(kubeconfig) if kubeconfig else None, client_configuration=configuration
            )
        except (config.ConfigException, OSError) as error:
            raise NoConfigurationError(messages.no_configuration(not_in_pod, error)) from error
    context = await asyncio.to_thread(_ssl_context, configuration)
    return Connection(configuration, context, loader)


def _open_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = address
    opened = socket.socket(family, kind, protocol)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _DELIVERY_MILLISECONDS)
    return opened


def _ssl_context(configuration: Configuration) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    # Cluster CAs are often made without the key usage extensions that OpenSSL's strict mode asks for.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
