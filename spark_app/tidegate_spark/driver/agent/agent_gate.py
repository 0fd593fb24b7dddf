"""Authenticates the agent's requests: a signature allows everything, the token reading. No I/O but the clock's.

Each process makes a number of its own, so a signature for another process, even of the same pod, is worthless here.
"""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections.abc import Callable

from tidegate_spark.contract.agent_protocol import (
    CHALLENGE_SECONDS,
    Greeting,
    Launch,
    SignedRequest,
    is_token,
    order_key,
    prove,
    public_number,
    read_header,
    same,
)
from tidegate_spark.process.serving.framing import Head, Refusal

MOST_NONCES = 4096
"""Requests that are remembered; one more within the time of a challenge is refused. The operator asks every few
seconds, and nobody else can have anything remembered."""
_PRIVATE_BYTES = 32


class Gate:
    """Knows the key of this process, and which requests there were. Thread safe."""

    def __init__(
        self,
        launch: Launch,
        operators: str,
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        """Make this process's number.

        Args:
            launch: which one the process belongs to.
            operators: the operator's public number, from the launch's Secret. If it is none, nobody gives orders.
            clock: seconds; goes on whatever somebody does to the time.
            draw: returns so many random bytes.
        """
        private = draw(_PRIVATE_BYTES)
        self._launch, self._clock = launch, clock
        self._number, self._of_challenges = public_number(private), draw(_PRIVATE_BYTES)
        try:
            self._key = order_key(private, operators, launch, operators=operators, drivers=self._number)
        except ValueError:
            self._key = b""
        self._lock = threading.Lock()
        self._seen: dict[str, float] = {}
        """Nonces, with the time when the challenge that each came with was made."""

    def greet(self, token: str, nonce: str) -> Greeting:
        """Say who this process is.

        Args:
            token: for looks.
            nonce: of who asks; what cannot be one is left out.
        """
        challenge = self.challenge()
        proof = prove(token, self._launch, self._number, challenge, nonce if is_token(nonce) else "")
        return Greeting(self._number, challenge, proof)

    def challenge(self) -> str:
        """Return one that holds from now on for two minutes; nothing is remembered of it."""
        return self._challenge_of(int(self._clock() * 1000))

    def judge(self, head: Head) -> Refusal | None:
        """Return why a signed request is refused, None if it is the operator's and was never there before.

        Its body is still to be compared with the digest that the signature covers.
        """
        read = read_header(head.headers.get("Authorization", ""), head.method, head.target)
        if read is None:
            return Refusal(401, "the request is not signed")
        request, signature = read
        if not self._key or not same(request.signature(self._key), signature):
            return Refusal(401, "the signature is not that of this process's operator")
        made = self._made_at(request.challenge)
        if made is None:
            return Refusal(401, "the challenge is not of this process, or too old")
        return self._take_note(request.nonce, made)

    def answer_signature(self, request: SignedRequest, status: int, body: bytes, challenge: str) -> str:
        """Return the signature of an answer to a request that was let in."""
        return request.answer_signature(self._key, status, body, challenge)

    def _challenge_of(self, milliseconds: int) -> str:
        mac = hmac.digest(self._of_challenges, str(milliseconds).encode(), "sha256").hex()[:32]
        return f"{milliseconds:x}-{mac}"

    def _made_at(self, challenge: str) -> float | None:
        try:
            milliseconds = int(challenge.partition("-")[0], 16)
        except ValueError:
            return None
        known = same(self._challenge_of(milliseconds), challenge)
        made = milliseconds / 1000
        return made if known and self._clock() - made <= CHALLENGE_SECONDS else None

    def _take_note(self, nonce: str, made: float) -> Refusal | None:
        with self._lock:
            if nonce in self._seen:
                return Refusal(401, "the request was there before")
            if len(self._seen) >= MOST_NONCES:
                # With a challenge that is too old by now, they would not be let in again.
                begin = self._clock() - CHALLENGE_SECONDS
                self._seen = {known: at for known, at in self._seen.items() if at >= begin}
            if len(self._seen) >= MOST_NONCES:
                return Refusal(429, f"more than {MOST_NONCES} signed requests in {CHALLENGE_SECONDS} seconds")
            self._seen[nonce] = made
            return None
