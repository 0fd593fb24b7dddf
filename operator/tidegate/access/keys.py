"""Derives the secrets of a launch from the operator's key: private number, read token, Spark's secret. Pure.

Nothing derived is stored: each replica and each later process computes the same from the key.
"""

from __future__ import annotations

import hmac

from tidegate_spark.contract.agent_protocol import Launch, order_key, public_number

KEY_BYTES = 32


class OperatorKeys:
    """Of one key; another key has nothing in common with it."""

    __slots__ = ("__key",)

    def __init__(self, key: bytes) -> None:
        """Take the key.

        Raises:
            ValueError: it is too short to be one.
        """
        if len(key) < KEY_BYTES:
            raise ValueError(f"an operator's key has {KEY_BYTES} bytes")
        self.__key = key

    @property
    def id(self) -> str:
        """Return an id that differs from key to key and shows nothing of it; names of Secrets are made of it."""
        return self._derive("id", b"").hex()[:32]

    def inspection_token(self, launch: Launch) -> str:
        """Return the token with which one can look, and of an older runtime do everything."""
        return self._derive("looks", launch.text).hex()

    def spark_secret(self, launch: Launch) -> str:
        """Return what driver and executors of a launch show each other on Spark's own ports."""
        return self._derive("spark", launch.text).hex()

    def number(self, launch: Launch) -> str:
        """Return the operator's public number for a launch."""
        return public_number(self._private(launch))

    def order_key(self, launch: Launch, number: str) -> bytes:
        """Return the key of a driver's process that has reported this number.

        Raises:
            ValueError: it is no number.
        """
        return order_key(self._private(launch), number, launch, operators=self.number(launch), drivers=number)

    def _private(self, launch: Launch) -> bytes:
        return self._derive("orders", launch.text)

    def _derive(self, purpose: str, of: bytes) -> bytes:
        return hmac.digest(hmac.digest(self.__key, f"tidegate/{purpose}/1".encode(), "sha256"), of, "sha256")
