"""Reads the mounted Secret of a channel's broker. Reads files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control.channels import messages
from tidegate_spark.control.channels.ports import ChannelError

USERNAME, PASSWORD = "username", "password"
CA, CERTIFICATE, KEY = "ca.crt", "tls.crt", "tls.key"
"""Keys of the Secret: those that Kubernetes has for them."""
_PUBLIC = frozenset({USERNAME, CA, CERTIFICATE})
_OURS = _PUBLIC | {PASSWORD, KEY}


@dataclass(frozen=True)
class ChannelSecret:
    """What a channel is reached with; ``repr`` does not show it."""

    directory: str = ""
    values: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        """Hide the values."""
        return "ChannelSecret(...)"

    def get(self, key: str) -> str:
        """Return a value, empty if there is none."""
        return dict(self.values).get(key, "")

    def file(self, key: str) -> str:
        """Return the path of a value's file, empty if there is none."""
        return str(Path(self.directory) / key) if self.get(key) else ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that must not be shown anywhere."""
        return tuple(value for key, value in self.values if value and key not in _PUBLIC)


def read_secret(directory: str, name: str) -> ChannelSecret:
    """Return the Secret ``name``, mounted at ``directory``; nothing if the channel names none.

    Raises:
        ChannelError: it is named, and not there (yet).
    """
    if not name:
        return ChannelSecret()
    found: dict[str, str] = {}
    try:
        # The kubelet keeps what it links to in folders whose names start with two dots.
        for path in sorted(Path(directory).iterdir()):
            if not path.name.startswith("..") and path.is_file():
                # Beside what is meant for us there may be a keystore in bytes, which is no setting.
                text = _text_of(path.read_bytes(), needed=path.name in _OURS)
                found.update({path.name: text} if text is not None else {})
    except (OSError, ValueError) as error:
        raise ChannelError(
            Reason.CHANNEL_CREDENTIALS_MISSING, f"Secret {name!r} of the control channel cannot be read: {error}"
        ) from None
    if not found:
        raise ChannelError(Reason.CHANNEL_CREDENTIALS_MISSING, messages.secret_missing(name))
    return ChannelSecret(directory, tuple(found.items()))


def _text_of(content: bytes, *, needed: bool) -> str | None:
    """Return a value, None if it is no text and not ``needed``; raises ValueError."""
    try:
        return content.decode().strip()
    except UnicodeDecodeError:
        if needed:
            raise
        return None
