"""Leader election by a Lease, as a state machine. No I/O, no clock.

The caller asks what to send, sends it, and hands in the answer with the times of both. At most one candidate leads,
because of four rules, of which client-go's leader election has the first three:

1. A leader leads for ``renew_deadline`` after it *sent* its last successful write of the Lease, by its own clock.
2. A candidate takes the Lease only after it has seen the same version of it for ``lease_duration``, which is longer,
   counted from the *answer* that showed it first. Clocks of two machines are never compared.
3. Each write names the version it was decided on, so one of two concurrent writes is refused.
4. A Lease that did not exist may have been deleted under a leader: whoever creates it leads only after
   ``lease_duration``.

A process that lost the leadership never leads again: it ends, and a new one is another candidate. So does one that sees
an older version of the Lease than before.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from tidegate.kube import leadership_messages as messages
from tidegate.kube.history import NewestVersion

RELEASED_SECONDS = 1
"""What a released Lease says of its duration, as client-go's does; 0 is not allowed."""
_SOON = 0.5
_ATTEMPTS = 3
_NEVER = float("inf")


class NotLeadingError(Exception):
    """The process does not hold the leadership: it changes nothing any more, and ends."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds. What lies between the deadline and the duration is for requests that are still under way."""

    lease_duration: float = 10.0
    renew_deadline: float = 7.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        """Refuse what cannot be safe, or cannot work.

        Raises:
            ValueError: the numbers do not fit each other.
        """
        if not 0 < self.retry_period < self.renew_deadline < self.lease_duration:
            raise ValueError(f"expected 0 < retry_period < renew_deadline < lease_duration, got {self}")


@dataclass(frozen=True, slots=True)
class Lease:
    """The Lease as the API server has it."""

    version: str
    holder: str
    seconds: float
    transitions: int


@dataclass(frozen=True, slots=True)
class Read:
    """Read the Lease."""


@dataclass(frozen=True, slots=True)
class Write:
    """Write the Lease, on condition that it has ``version``; with an empty version, create it."""

    version: str
    holder: str
    seconds: int
    transitions: int
    taken: bool
    """Whether this is the beginning of a tenure, for ``acquireTime``."""


Request: TypeAlias = Read | Write


class NoLease(Enum):
    """What may come instead of a Lease."""

    MISSING = auto()
    """There is none."""
    CHANGED = auto()
    """It does not have the version that the write names, or exists already: nothing was written."""
    SILENT = auto()
    """No usable answer: whether the write took effect is not known."""


Answer: TypeAlias = Lease | NoLease


class _Standing(Enum):
    STANDBY = auto()
    LEADING = auto()
    RELEASING = auto()
    ENDED = auto()


class Candidate:
    """One process that wants to lead. All times are seconds of one clock that never stops, not even for SIGSTOP."""

    def __init__(self, identity: str, timing: Timing) -> None:
        """Begin as standby.

        Args:
            identity: no other process, earlier or later, has the same.
            timing: all candidates of a Lease should agree on it; a longer duration that the Lease names is respected.
        """
        self.identity = identity
        self.ended = ""
        """Why this candidate will never lead again; empty while it may."""
        self._timing = timing
        self._standing = _Standing.STANDBY
        self._lease: Lease | None = None
        self._newest = NewestVersion()
        self._seen_at = 0.0
        self._missing = self._made = False
        self._read_first = True
        self._next = 0.0
        self._from, self._until = _NEVER, _NEVER

    @property
    def leader(self) -> str:
        """The identity the Lease names, as far as is known; empty if nobody's."""
        return self._lease.holder if self._lease is not None else ""

    def holds(self, now: float) -> bool:
        """Return whether this process may act now."""
        return self._standing is _Standing.LEADING and self._from <= now < self._until

    def next_request(self, now: float) -> Request | None:
        """Return what to send now, or None if there is nothing to send before :meth:`pause`."""
        self._lapse(now)
        if self._standing is _Standing.ENDED or now < self._next:
            return None
        if self._standing is _Standing.RELEASING:
            return Read() if self._read_first else self._write("", RELEASED_SECONDS)
        if self._read_first or not (self._missing or self._standing is _Standing.LEADING or self._is_free(now)):
            return Read()
        self._made = self._made or self._missing
        return self._write(self.identity, round(self._timing.lease_duration))

    def pause(self, now: float) -> float:
        """Return seconds until there is something to do: send, begin to hold, or notice that it is over."""
        if self._standing is _Standing.ENDED:
            return 0.0
        times = [self._next]
        if self._standing is _Standing.LEADING:
            times += [self._until] + ([self._from] if now < self._from else [])
        return max(0.0, min(times) - now)

    def patience(self, now: float) -> float:
        """Return seconds to wait for an answer: so short that another attempt fits in before it is too late."""
        share = self._timing.renew_deadline / _ATTEMPTS
        return max(0.1, min(share, self._until - now)) if self._standing is _Standing.LEADING else share

    def take_in(self, request: Request, answer: Answer, sent_at: float, now: float) -> None:
        """Learn what came of a request.

        Args:
            request: from :meth:`next_request`.
            answer: what came; SILENT if nothing did.
            sent_at: a time not after the sending.
            now: a time not before the answer's arrival.
        """
        self._lapse(now)
        if self._standing is _Standing.ENDED:
            return
        self._next = now + self._timing.retry_period
        if isinstance(answer, Lease) and self._newest.is_back(answer.version):
            self._end(messages.LEASE_RESTORED)  # a standby too: what it knows of everything else is as wrong
        elif isinstance(answer, Lease):
            self._newest.note(answer.version)
            self._see(answer, now)
            if isinstance(request, Read):
                self._after_read(now)
            else:
                self._after_write(sent_at, now)
        elif answer is NoLease.MISSING:
            self._after_missing(now)
        elif answer is NoLease.CHANGED:
            self._read_first, self._next = True, now
        elif self._standing is _Standing.STANDBY:
            self._read_first = True
        else:
            self._next = now + min(_SOON, self._timing.retry_period)

    def resign(self, now: float) -> None:
        """Hold no longer, from this moment on; the requests that follow free the Lease for the next one."""
        if self.holds(now):
            self._standing, self._next = _Standing.RELEASING, now
        elif not self.ended:
            # Who made the Lease and has not led yet leaves it to expire: there may still be a leader of an earlier one.
            self._end("resigned")

    def _write(self, holder: str, seconds: int) -> Write:
        version = "" if self._missing or self._lease is None else self._lease.version
        transitions = self._lease.transitions if self._lease is not None else 0
        taken = self._standing is _Standing.STANDBY
        return Write(version, holder, seconds, transitions + 1 if taken and version else transitions, taken)

    def _is_free(self, now: float) -> bool:
        if self._lease is None:
            return False
        if self._lease.holder in ("", self.identity):
            return True
        return now >= self._free_at(self._lease)

    def _free_at(self, lease: Lease) -> float:
        return self._seen_at + max(lease.seconds, self._timing.lease_duration)

    def _see(self, lease: Lease, now: float) -> None:
        if self._lease is None or self._lease.version != lease.version:
            self._lease, self._seen_at = lease, now
        self._missing = self._read_first = False
        self._made = self._made and lease.holder == self.identity

    def _after_read(self, now: float) -> None:
        assert self._lease is not None
        holder = self._lease.holder
        if self._standing is not _Standing.STANDBY and holder != self.identity:
            self._end("released" if self._standing is _Standing.RELEASING else messages.lease_names(holder or "nobody"))
        elif self._standing is not _Standing.STANDBY or self._is_free(now):
            self._next = now
        else:
            self._next = min(self._next, self._free_at(self._lease))

    def _after_write(self, sent_at: float, now: float) -> None:
        if self._standing is _Standing.RELEASING:
            self._end("released")
            return
        until = sent_at + self._timing.renew_deadline
        if now >= until:
            self._next = now  # of a standby that was slow to learn that it won: it writes again before it leads
            return
        if self._standing is _Standing.STANDBY:
            self._standing = _Standing.LEADING
            self._from = now + self._timing.lease_duration if self._made else now
        self._until, self._next = until, sent_at + self._timing.retry_period

    def _after_missing(self, now: float) -> None:
        if self._standing is _Standing.STANDBY:
            self._lease, self._missing, self._read_first, self._next = None, True, False, now
        else:
            self._end("released" if self._standing is _Standing.RELEASING else messages.LEASE_DELETED)

    def _lapse(self, now: float) -> None:
        if self._standing is _Standing.LEADING and now >= self._until:
            self._end(messages.not_renewed(self._timing.renew_deadline))

    def _end(self, why: str) -> None:
        self._standing, self.ended = _Standing.ENDED, why
