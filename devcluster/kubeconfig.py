"""Kubeconfig files and static tokens: pure text."""

import base64
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

SYSTEM_MASTERS = "system:masters"


def new_token() -> str:
    """Return a fresh bearer token."""
    return secrets.token_hex(16)


@dataclass(frozen=True)
class User:
    """A user whom the API server knows by a static token."""

    name: str
    groups: tuple[str, ...] = ()
    token: str = field(default_factory=new_token)


def tokens_csv(users: Mapping[str, User]) -> str:
    """Return the content of the API server's ``--token-auth-file``."""
    return "".join(f'{u.token},{u.name},{u.name},"{",".join(u.groups)}"\n' for u in users.values())


def kubeconfig(server: str, authority: bytes, user: User, cluster: str = "tidegate") -> str:
    """Return a kubeconfig (JSON, which is YAML) for one user.

    Args:
        server: address of the API server, ``https://host:port``.
        authority: PEM of the certificate authority.
        user: who calls.
        cluster: name of cluster and context.
    """
    ca = base64.b64encode(authority).decode()
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": {"server": server, "certificate-authority-data": ca}}],
        "users": [{"name": user.name, "user": {"token": user.token}}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": user.name}}],
        "current-context": cluster,
    }
    return json.dumps(content, indent=2) + "\n"
