"""The signing session with one driver process. No I/O; draws nonces.

It holds nothing of a single request, because a poll and an order to one process may be under way at the same time.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from tidegate.access.keys import OperatorKeys
from tidegate.agent import messages
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.agent_protocol import (
    CHALLENGE_HEADER,
    SIGNATURE_HEADER,
    Greeting,
    Launch,
    SignedRequest,
    digest_of,
    is_token,
    prove,
    same,
)

_NONCE_BYTES = 16
_greetings = msgspec.json.Decoder(Greeting)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came over the wire."""

    status: int
    body: bytes | None
    """None: too long."""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_good(self) -> bool:
        """Whether it is what was asked for."""
        return self.status < 300 and self.body is not None


class UntrustedError(Exception):
    """An answer is not from the process that it should be from."""


@dataclass(frozen=True, slots=True)
class TokenOnly:
    """A driver whose runtime is from before requests were signed: it takes everything from whoever has the token."""

    process: str
    token: str


@dataclass(slots=True)
class Session:
    """A process with which there is a key."""

    process: str
    """Of which pod, and which of its processes (:func:`tidegate.pods.records.record.process_of`)."""
    key: bytes
    challenge: str
    """The newest; any number of requests can have the same."""

    def sign(self, method: str, target: str, body: bytes | None) -> SignedRequest:
        """Return a request as it is to be sent."""
        nonce = secrets.token_urlsafe(_NONCE_BYTES)
        return SignedRequest(method, target, digest_of(body or b""), self.challenge, nonce)

    def is_answer(self, request: SignedRequest, answer: Answer) -> bool:
        """Return whether an answer is this process's, to this very request; its next challenge is then noted."""
        challenge, signature = answer.headers.get(CHALLENGE_HEADER, ""), answer.headers.get(SIGNATURE_HEADER, "")
        if answer.body is None or not is_token(challenge) or not is_token(signature):
            return False
        if not same(request.answer_signature(self.key, answer.status, answer.body, challenge), signature):
            return False
        self.challenge = challenge
        return True


def launch_of(pod: PodRecord) -> Launch:
    """Return which launch a driver's pod is of."""
    return Launch(pod.namespace, pod.app, pod.app_uid, pod.epoch)


def new_nonce() -> str:
    """Return one for a greeting."""
    return secrets.token_urlsafe(_NONCE_BYTES)


def begin(keys: OperatorKeys, launch: Launch, process: str, nonce: str, body: bytes) -> Session:
    """Return the session with a process that has greeted.

    Args:
        keys: the operator's.
        launch: of which the process should be.
        process: identifies it.
        nonce: that the greeting was asked for with.
        body: the greeting.

    Raises:
        UntrustedError: it is not from a driver of this launch, or none at all.
    """
    try:
        said = _greetings.decode(body)
        proof = prove(keys.inspection_token(launch), launch, said.number, said.challenge, nonce)
        if not same(proof, said.proof) or not is_token(said.challenge):
            raise UntrustedError(messages.NOT_THIS_LAUNCH)
        return Session(process, keys.order_key(launch, said.number), said.challenge)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise UntrustedError(messages.greeting_unreadable(error)) from None
