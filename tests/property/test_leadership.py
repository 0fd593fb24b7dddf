"""At most one process leads, whatever happens to processes, clocks and messages; and somebody leads when it is over."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidegate.kube.leadership import Answer, Candidate, Request, Timing
from tidegate_testing.election_simulation import FAULTS, TIMING, Election, Fault, Server

TROUBLE, CALM = 120.0, 60.0

faults = st.builds(
    Fault,
    at=st.floats(0.0, TROUBLE),
    kind=st.sampled_from(FAULTS),
    process=st.integers(0, 2),
    seconds=st.floats(0.1, 30.0),
)
schedules = st.tuples(st.integers(0, 2**32), st.integers(2, 3), st.lists(faults, max_size=12))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(schedule=schedules)
def test_at_most_one_process_holds_at_any_time(schedule: tuple[int, int, list[Fault]]) -> None:
    election = Election(*schedule)
    election.run(TROUBLE)
    assert election.overlaps == []
    election.run(CALM)
    assert (election.overlaps, len(election.holders())) == ([], 1)


class NeverLapses(Candidate):
    """Leads until it is told otherwise."""

    def _lapse(self, now: float) -> None:
        pass

    def holds(self, now: float) -> bool:
        return super().holds(min(now, self._until - 1))

    def pause(self, now: float) -> float:
        return max(0.1, super().pause(now))


class CountsFromTheAnswer(Candidate):
    """Takes the time of the answer for that of the renewal."""

    def take_in(self, request: Request, answer: Answer, sent_at: float, now: float) -> None:
        super().take_in(request, answer, now, now)

    def patience(self, now: float) -> float:
        return 60.0


class DoesNotWait(Candidate):
    """Takes the Lease at the first sight of it."""

    def _is_free(self, now: float) -> bool:
        return True


class LeadsAtOnce(Candidate):
    """Makes a Lease and leads, without thinking of a leader of one that was deleted."""

    def take_in(self, request: Request, answer: Answer, sent_at: float, now: float) -> None:
        self._made = False
        super().take_in(request, answer, sent_at, now)


class TrustsAnyServer(Candidate):
    """As it should be; its server does not look at versions."""


RULES: dict[type[Candidate], tuple[Fault, ...]] = {
    NeverLapses: (Fault(40.0, "stop", 0, 20.0), Fault(70.0, "stop", 1, 20.0)),
    CountsFromTheAnswer: (Fault(30.0, "slow", 0, 6.0), Fault(33.0, "cut off", 0, 30.0)),
    DoesNotWait: (),
    LeadsAtOnce: (Fault(40.0, "delete lease", 0, 0.0),),
    TrustsAnyServer: (Fault(30.0, "slow", 0, 60.0), Fault(30.0, "slow", 1, 60.0)),
}


@pytest.mark.parametrize("wrong", RULES, ids=lambda wrong: wrong.__name__)
def test_each_rule_is_needed(wrong: type[Candidate]) -> None:
    def two_hold(seed: int) -> bool:
        election = Election(seed, 2, RULES[wrong], wrong, Server(checks_versions=wrong is not TrustsAnyServer))
        election.run(TROUBLE)
        return bool(election.overlaps)

    assert any(two_hold(seed) for seed in range(200))


def first_tenure_after(fault: Fault, seed: int) -> float:
    """Return seconds from a fault that strikes the first leader to the next one's beginning."""
    election = Election(seed, 2, ())
    election.run(30.0)
    (leader,) = election.holders()
    names = [process.candidate.identity for process in election.processes]
    election.strike(Fault(election.now, fault.kind, names.index(leader), fault.seconds))
    struck = election.now
    election.run(60.0)
    return next(at for at, name in election.tenures if at > struck and name != leader) - struck


@given(seed=st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_a_killed_leader_is_followed_as_soon_as_its_lease_has_expired(seed: int) -> None:
    after = first_tenure_after(Fault(0.0, "kill", 0, 0.0), seed)
    assert after <= (TIMING.lease_duration + TIMING.retry_period) * 1.06


@given(seed=st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_a_leader_that_resigns_is_followed_at_the_next_look(seed: int) -> None:
    assert first_tenure_after(Fault(0.0, "resign", 0, 0.0), seed) <= TIMING.retry_period * 1.06 + 0.2


@pytest.mark.parametrize("numbers", [(7, 7, 2), (10, 12, 2), (10, 7, 7), (10, 7, 0)])
def test_a_timing_that_can_not_be_safe_is_refused(numbers: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="retry_period < renew_deadline < lease_duration"):
        Timing(*numbers)
