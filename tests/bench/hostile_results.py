"""What the benchmark of hostile objects makes of the audit log and the operator's metrics. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from tests.bench.audit import Request, percentile

ALONE, PRESENT, ARRIVING = KINDS = ("alone", "present", "arriving")
_LOOP_DELAY = "tidegate_event_loop_delay_seconds"


@dataclass(frozen=True)
class Delays:
    """How often the operator's event loop was late by at most so many seconds, and by how much in all."""

    at_most: Mapping[float, float]
    total: float

    @classmethod
    def of(cls, metrics: str) -> "Delays":
        """Read what the operator says of itself."""
        (family,) = [f for f in text_string_to_metric_families(metrics) if f.name == _LOOP_DELAY]
        buckets = {float(s.labels["le"]): s.value for s in family.samples if s.name.endswith("_bucket")}
        return cls(buckets, next(s.value for s in family.samples if s.name.endswith("_sum")))

    def since(self, before: "Delays") -> "Delays":
        """Return what came after an earlier reading."""
        added = {bound: count - before.at_most[bound] for bound, count in self.at_most.items()}
        return Delays(added, self.total - before.total)

    def plus(self, other: "Delays") -> "Delays":
        """Return both together."""
        both = {bound: count + other.at_most[bound] for bound, count in self.at_most.items()}
        return Delays(both, self.total + other.total)

    @property
    def mean(self) -> float:
        """Return the mean in seconds."""
        return self.total / max(self.at_most.values())

    def bound(self, share: float) -> float:
        """Return the bucket's bound, in seconds, that at least ``share`` (0..1) of the delays do not exceed."""
        wanted = share * max(self.at_most.values())
        return min(bound for bound, count in self.at_most.items() if count >= wanted)


@dataclass(frozen=True)
class Window:
    """Some edits of each application, made in one of the ways.

    Attributes:
        kind: alone, present or arriving.
        start: seconds since the epoch.
        end: the same.
        stored: hostile objects that the API server took.
        delays: of the operator's event loop meanwhile.
        peak_mib: the most memory that the operator's process had meanwhile.
    """

    kind: str
    start: float
    end: float
    stored: int
    delays: Delays
    peak_mib: float


def latencies(requests: Iterable[Request], window: Window, editor: str, operator: str) -> list[float]:
    """Return the seconds from the API server's receipt of each edit to its answer to the status that follows from it.

    Args:
        requests: of the audit log, in the order of their arrival.
        window: when the edits were made; nobody edits an application before the edit before was answered.
        editor: how the user agent begins of who edits.
        operator: the same of who answers.

    Raises:
        ValueError: an edit was not answered.
    """
    about = [r for r in requests if r.resource == "streamingapps" and r.code == 200 and r.writes]
    answers = [r for r in about if r.user_agent.startswith(operator) and r.subresource == "status"]
    found = []
    for edit in about:
        if not edit.user_agent.startswith(editor) or not window.start <= edit.received <= window.end:
            continue
        own = (r.finished for r in answers if r.name == edit.name and r.received >= edit.received)
        answered = next(own, None)
        if answered is None:
            raise ValueError(f"an edit of {edit.name} was not answered")
        found.append(answered - edit.received)
    return found


def results(windows: Sequence[Window], found: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return latencies, delays and memory of each way, and the ratios of each to the applications alone.

    Args:
        windows: all, of whatever way.
        found: latencies in seconds, by way.
    """
    made: dict[str, float] = {}
    for kind in KINDS:
        own = [window for window in windows if window.kind == kind]
        delays = own[0].delays
        for window in own[1:]:
            delays = delays.plus(window.delays)
        made |= {f"p{share}_ms_{kind}": 1000 * percentile(found[kind], share / 100) for share in (50, 99)}
        made |= {
            f"loop_delay_mean_ms_{kind}": 1000 * delays.mean,
            f"loop_delay_p99_below_ms_{kind}": 1000 * delays.bound(0.99),
            f"loop_delay_all_below_ms_{kind}": 1000 * delays.bound(1),
            f"peak_rss_mib_{kind}": max(window.peak_mib for window in own),
        }
    for kind in (PRESENT, ARRIVING):
        made |= {
            f"p{share}_ratio_{kind}": made[f"p{share}_ms_{kind}"] / made[f"p{share}_ms_{ALONE}"] for share in (50, 99)
        }
    return made
