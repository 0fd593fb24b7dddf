"""Authentication between operator and agent: key exchange and signatures. Part of the contract; pure.

Each launch has a Secret with a token for reading and a public number of the operator's (RFC 7919, ffdhe2048); each
driver process makes a number of its own. Both sides derive a key from the two, which a reader of the Secret cannot.

Standard library only: stock Spark images have nothing else.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass

_FFDHE2048 = """
    FFFFFFFF FFFFFFFF ADF85458 A2BB4A9A AFDC5620 273D3CF1
    D8B9C583 CE2D3695 A9E13641 146433FB CC939DCE 249B3EF9
    7D2FE363 630C75D8 F681B202 AEC4617A D3DF1ED5 D5FD6561
    2433F51F 5F066ED0 85636555 3DED1AF3 B557135E 7F57C935
    984F0C70 E0E68B77 E2A689DA F3EFE872 1DF158A1 36ADE735
    30ACCA4F 483A797A BC0AB182 B324FB61 D108A94B B2C8E3FB
    B96ADAB7 60D7F468 1D4F42A3 DE394DF4 AE56EDE7 6372BB19
    0B07A7C8 EE0A6D70 9E02FCE1 CDF7E2EC C03404CD 28342F61
    9172FE9C E98583FF 8E4F1232 EEF28183 C3FE3B1B 4C6FAD73
    3BB5FCBC 2EC22005 C58EF183 7D1683B2 C6F34A26 C1B2EFFA
    886B4238 61285C97 FFFFFFFF FFFFFFFF
"""
PRIME = int("".join(_FFDHE2048.split()), 16)
"""The group of RFC 7919. (PRIME - 1) / 2 is a prime as well: no numbers but 1 and -1 lead into a small group."""
GENERATOR = 2
_NUMBER_BYTES = 256
LONGEST_NUMBER = 2 * _NUMBER_BYTES
"""Characters of a number as text."""

GREETING_PATH = "/v1/greeting"
"""Command port, open: who the process is, and a challenge. ``?nonce=`` is the asker's."""
SCHEME = "Tidegate"
"""Of the header Authorization of a signed request."""
CHALLENGE_HEADER, SIGNATURE_HEADER = "Tidegate-Challenge", "Tidegate-Signature"
"""Of the answer to one: the next challenge, and the signature."""
CHALLENGE_SECONDS = 120
"""For so long a challenge holds, by the clock of the process that made it: two clocks need not agree."""
_WORD = re.compile(r"[A-Za-z0-9_-]{1,128}")


@dataclass(frozen=True)
class Launch:
    """Whom a key is for: one launch of one application."""

    namespace: str
    app: str
    uid: str
    epoch: int

    @property
    def text(self) -> bytes:
        """Return what is signed or derived from; different launches have different ones."""
        return joined("StreamingApp", self.namespace, self.app, self.uid, str(self.epoch))


@dataclass(frozen=True)
class Greeting:
    """What a driver's process says of itself to everybody."""

    number: str
    """Public; in hexadecimal digits."""
    challenge: str
    proof: str
    """That it comes from the holder of the launch's token, and answers this very question."""


@dataclass(frozen=True)
class SignedRequest:
    """All that a request's signature covers.

    It goes with the request, and the answer is checked by it: two requests to one process that cross each other have
    nothing in common but the key.
    """

    method: str
    target: str
    digest: str
    """Of the body."""
    challenge: str
    nonce: str

    def signature(self, key: bytes) -> str:
        """Return the signature under a process's key."""
        return _signed(key, "request", self.method, self.target, self.digest, self.challenge, self.nonce)

    def header(self, key: bytes) -> str:
        """Return the header Authorization."""
        return " ".join((SCHEME, self.challenge, self.nonce, self.digest, self.signature(key)))

    def answer_signature(self, key: bytes, status: int, body: bytes, challenge: str) -> str:
        """Return the signature of the answer, with the next challenge, to this request and no other."""
        return _signed(key, "answer", self.nonce, self.signature(key), str(status), digest_of(body), challenge)


def read_header(header: str, method: str, target: str) -> tuple[SignedRequest, str] | None:
    """Return what the header Authorization of a request says, and its signature, which is not checked here.

    Returns:
        None if the header is not of a signed request, or not in its form.
    """
    words = header.split(" ")
    if len(words) != 5 or words[0] != SCHEME or not all(map(_WORD.fullmatch, words)):
        return None
    _, challenge, nonce, digest, signature = words
    return SignedRequest(method, target, digest, challenge, nonce), signature


def is_token(text: str) -> bool:
    """Return whether a text can be a nonce or a challenge."""
    return _WORD.fullmatch(text) is not None


def same(one: str, other: str) -> bool:
    """Compare two signatures; takes the same time either way."""
    return hmac.compare_digest(one.encode(), other.encode())


def digest_of(body: bytes) -> str:
    """Return the digest of a body."""
    return hashlib.sha256(body).hexdigest()


def public_number(private: bytes) -> str:
    """Return the public number of a private one, as text."""
    return format(pow(GENERATOR, int.from_bytes(private, "big"), PRIME), "x")


def order_key(private: bytes, others: str, launch: Launch, *, operators: str, drivers: str) -> bytes:
    """Return the key that both sides make for one process of one launch.

    Args:
        private: one side's own number.
        others: the other side's public one.
        launch: of the driver.
        operators: the operator's public number; one of the two is ``others``.
        drivers: the driver's.

    Raises:
        ValueError: the other side's is no number, or one with which anybody would have the key.
    """
    if len(others) > LONGEST_NUMBER:
        raise ValueError("the number is too long")
    number = int(others, 16)
    if not 1 < number < PRIME - 1:
        raise ValueError("the number is none of the group")
    shared = pow(number, int.from_bytes(private, "big"), PRIME).to_bytes(_NUMBER_BYTES, "big")
    secret = hmac.digest(b"tidegate/orders/1", shared, "sha256")
    return hmac.digest(secret, launch.text + joined(operators, drivers), "sha256")


def prove(token: str, launch: Launch, number: str, challenge: str, nonce: str) -> str:
    """Return the proof of a greeting."""
    return _signed(token.encode(), "greeting", launch.text.hex(), number, challenge, nonce)


def joined(*parts: str) -> bytes:
    """Return texts as one, in which none can run into the next."""
    return b"".join(len(part.encode()).to_bytes(8, "big") + part.encode() for part in parts)


def _signed(key: bytes, kind: str, *parts: str) -> str:
    return hmac.digest(key, joined(f"tidegate/{kind}/1", *parts), "sha256").hex()
