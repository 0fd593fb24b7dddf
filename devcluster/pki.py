"""Keys and certificates of a cluster, made by openssl. Writes files."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from devcluster import private

_DAYS = "30"


@dataclass(frozen=True)
class KeyPair:
    """A certificate and its key, as PEM files."""

    certificate: Path
    key: Path


@dataclass(frozen=True)
class Pki:
    """Everything that proves identity in one cluster."""

    authority: KeyPair
    server: KeyPair
    kubelet_client: KeyPair
    """The API server towards kubelets."""
    service_account_key: Path


def create(folder: Path, addresses: Sequence[str]) -> Pki:
    """Make an authority, the API server's pair for ``addresses``, its client pair, and the service account key.

    Keys are for their owner only (openssl sees to that), and so is the folder.
    """
    private.make_folder(folder)
    authority = KeyPair(folder / "ca.crt", folder / "ca.key")
    _openssl(
        *("req", "-x509", "-days", _DAYS, "-subj", "/CN=tidegate-devcluster"),
        *("-addext", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature"),
        *_new_key(authority.key),
        *("-out", str(authority.certificate)),
    )
    names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"]
    alternatives = ",".join([f"DNS:{n}" for n in [*names, "localhost"]] + [f"IP:{a}" for a in addresses])
    server = _signed(
        authority,
        KeyPair(folder / "apiserver.crt", folder / "apiserver.key"),
        "/CN=kube-apiserver",
        "extendedKeyUsage=serverAuth",
        f"subjectAltName={alternatives}",
    )
    client = _signed(
        authority,
        KeyPair(folder / "kubelet-client.crt", folder / "kubelet-client.key"),
        "/O=system:masters/CN=kube-apiserver",
        "extendedKeyUsage=clientAuth",
    )
    service_account_key = folder / "service-account.key"
    _openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", str(service_account_key))
    return Pki(authority, server, client, service_account_key)


def _signed(authority: KeyPair, pair: KeyPair, subject: str, *extensions: str) -> KeyPair:
    _openssl(
        *("req", "-x509", "-days", _DAYS, "-subj", subject),
        *("-CA", str(authority.certificate), "-CAkey", str(authority.key)),
        *(word for e in ("basicConstraints=critical,CA:FALSE", *extensions) for word in ("-addext", e)),
        *_new_key(pair.key),
        *("-out", str(pair.certificate)),
    )
    return pair


def _new_key(key: Path) -> tuple[str, ...]:
    return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(key))


def _openssl(*arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {arguments[0]}: {done.stderr.strip()}")
