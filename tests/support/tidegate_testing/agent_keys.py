"""A launch, its operator's side of the keys, and a gate with a clock that tests set. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from tidegate_spark.contract.agent_protocol import Launch, SignedRequest, digest_of, order_key, public_number
from tidegate_spark.driver.agent.agent_gate import Gate
from tidegate_spark.process.serving.framing import Head, Reading

LAUNCH = Launch("shop", "orders", "u-1", 3)
PRIVATE = bytes(range(1, 33))
OPERATORS = public_number(PRIVATE)
INSPECTION_TOKEN = "token-for-looks"


def drawing(seed: int = 0) -> Callable[[int], bytes]:
    """Return what draws the same bytes each time; other seeds draw others."""
    numbers = itertools.count(seed * 1000 + 1)
    return lambda length: next(numbers).to_bytes(length, "big")


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def gate_with(clock: Callable[[], float], *, seed: int = 0, operators: str = OPERATORS) -> Gate:
    """Return the gate of a driver's process; another seed is another process."""
    return Gate(LAUNCH, operators, clock, drawing(seed))


def key_of(gate: Gate, *, private: bytes = PRIVATE, launch: Launch = LAUNCH) -> bytes:
    """Return the key that who has a private number makes with a process: the operator's, unless told otherwise."""
    number = gate.greet(INSPECTION_TOKEN, "nonce").number
    return order_key(private, number, launch, operators=OPERATORS, drivers=number)


def request_to(gate: Gate, nonce: str, target: str = "/v1/stop") -> SignedRequest:
    """Return an order with the gate's newest challenge."""
    return SignedRequest("POST", target, digest_of(b"{}"), gate.challenge(), nonce)


def head_of(method: str, target: str, authorization: str) -> Head:
    """Return what the server reads of a request before its body."""
    reading = Reading()
    reading.buffer += f"{method} {target} HTTP/1.1\r\nAuthorization: {authorization}\r\n\r\n".encode("latin-1")
    head = reading.head()
    assert isinstance(head, Head), head
    return head
