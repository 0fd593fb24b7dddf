"""The checker finds what is lost, doubled or wrong, in the output and in the state, and forgives repeats."""

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chaos.checker import Verdict, check
from tests.chaos.records import Account, Output, Record, value_of

KEYS = ("a", "b")


def topic(count: int = 6) -> list[Record]:
    """Records of two keys in turn, each key in a partition of its own."""
    return [
        Record(
            partition=n % 2,
            offset=n // 2,
            time=1000.0 + n,
            key=KEYS[n % 2],
            number=n // 2 + 1,
            value=value_of(KEYS[n % 2], n // 2 + 1),
        )
        for n in range(count)
    ]


def application(
    inputs: Iterable[Record],
    *,
    times: dict[tuple[str, int], int] | None = None,
    accounts: dict[str, Account] | None = None,
) -> tuple[list[Output], dict[str, Account]]:
    """What an application that takes each record so many times (once, if not said) writes and holds."""
    state, outputs = dict(accounts or {}), []
    for record in inputs:
        for _ in range((times or {}).get((record.key, record.number), 1)):
            before = state.get(record.key, Account(0, 0, 0))
            now = Account(before.count + 1, before.sum + record.value, record.number)
            state[record.key] = now
            outputs.append(Output(*record.place, record.time + 0.5, record.key, now.count, now.sum, now.last))
    return outputs, state


def amounts(verdict: Verdict) -> tuple[int, int]:
    return verdict.amount("lost"), verdict.amount("doubled")


def test_an_application_that_takes_every_record_once_is_right() -> None:
    verdict = check(topic(), *application(topic()))
    assert verdict.ok
    assert (verdict.inputs, verdict.outputs, verdict.repeats) == (6, 6, ())


def test_output_that_was_written_again_is_no_mistake_and_is_counted() -> None:
    outputs, state = application(topic())
    again = [Output(*o.place, 2000.0, o.key, o.count, o.sum, o.last) for o in outputs[2:4]]
    verdict = check(topic(), [*outputs, *again], state)
    assert verdict.ok
    assert verdict.repeats == (2000.0, 2000.0)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_record_that_the_application_never_took_is_lost_once_wherever_it_stood(number: int) -> None:
    verdict = check(topic(), *application(topic(), times={("a", number): 0}))
    assert amounts(verdict) == (1, 0)
    (mistake,) = verdict.mistakes
    assert (mistake.key, mistake.number) == ("a", number)
    assert verdict.wrong_states == ("a",)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_record_that_was_taken_twice_is_doubled_once_wherever_it_stood(number: int) -> None:
    verdict = check(topic(), *application(topic(), times={("b", number): 2}))
    assert amounts(verdict) == (0, 1)
    assert not verdict.ok
    assert verdict.wrong_states == ("b",)


def test_a_record_lost_and_another_one_doubled_do_not_make_up_for_each_other() -> None:
    verdict = check(topic(), *application(topic(), times={("a", 1): 0, ("a", 3): 2}))
    assert amounts(verdict) == (1, 1)


def test_output_that_is_missing_is_lost_though_the_state_is_right() -> None:
    outputs, state = application(topic())
    verdict = check(topic(), [o for o in outputs if o.place != (0, 1)], state)
    assert amounts(verdict) == (1, 0)
    assert verdict.wrong_states == ()


def test_the_last_outputs_missing_are_lost() -> None:
    outputs, state = application(topic())
    assert amounts(check(topic(), outputs[:-4], state)) == (4, 0)


def test_state_that_lost_what_its_output_once_told_is_lost() -> None:
    outputs, state = application(topic())
    _, older = application(topic(4))
    assert state != older
    verdict = check(topic(), outputs, older)
    assert amounts(verdict) == (2, 0)
    assert verdict.wrong == ()


def test_state_that_went_back_under_the_stream_is_lost_where_it_went_back() -> None:
    first, state = application(topic(4))
    _, older = application(topic(2))
    rest, fallen = application(topic()[4:], accounts=older)
    verdict = check(topic(), [*first, *rest], fallen)
    assert amounts(verdict) == (2, 0)
    assert [(m.key, m.number) for m in verdict.mistakes] == [("a", 3), ("b", 3)]
    assert state != fallen


def test_a_batch_that_was_run_again_on_top_of_itself_is_doubled() -> None:
    first, state = application(topic(4))
    again, later = application(topic()[2:], accounts=state)
    verdict = check(topic(), [*first, *again], later)
    assert amounts(verdict) == (0, 2)
    assert set(verdict.wrong) == {(0, 1), (1, 1), (0, 2), (1, 2)}


def test_a_sum_that_is_off_is_wrong_though_the_count_is_right() -> None:
    outputs, state = application(topic())
    outputs[-1] = Output(*outputs[-1].place, 0.0, "b", 3, 1, 3)
    verdict = check(topic(), outputs, {**state, "a": Account(3, 1, 3)})
    assert verdict.wrong == ((1, 2),)
    assert verdict.wrong_states == ("a",)
    assert not verdict.ok


def test_output_and_state_about_nothing_are_wrong() -> None:
    outputs, state = application(topic())
    verdict = check(topic(), [*outputs, Output(0, 99, 0.0, "a", 4, 4, 4)], {**state, "c": Account(1, 1, 1)})
    assert verdict.unexpected == ((0, 99),)
    assert verdict.wrong_states == ("c",)
    assert not verdict.ok


def test_a_key_without_any_output_or_state_is_lost_whole() -> None:
    verdict = check(topic(), *application([r for r in topic() if r.key == "a"]))
    assert amounts(verdict) == (3, 0)


@given(
    taken=st.lists(st.integers(0, 3), min_size=12, max_size=12),
    repeats=st.lists(st.integers(0, 11), max_size=5),
)
def test_whatever_is_lost_or_doubled_in_whatever_mixture_the_verdict_is_no(
    taken: Sequence[int], repeats: Sequence[int]
) -> None:
    verdict = verdict_on(taken, repeats)
    assert verdict.ok == (set(taken) == {1})
    assert verdict.amount("lost") >= sum(n == 0 for n in taken)
    assert verdict.report()


@given(taken=st.lists(st.integers(0, 1), min_size=12, max_size=12), repeats=st.lists(st.integers(0, 11), max_size=5))
def test_losses_are_counted_exactly(taken: Sequence[int], repeats: Sequence[int]) -> None:
    assert amounts(verdict_on(taken, repeats)) == (taken.count(0), 0)


@given(taken=st.lists(st.integers(1, 3), min_size=12, max_size=12))
def test_doubles_are_counted_exactly(taken: Sequence[int]) -> None:
    assert amounts(verdict_on(taken, ())) == (0, sum(taken) - len(taken))


def verdict_on(taken: Sequence[int], repeats: Sequence[int]) -> Verdict:
    """The verdict on an application that takes each record so many times and writes some of its output again."""
    inputs = topic(12)
    times = {(record.key, record.number): n for record, n in zip(inputs, taken, strict=True)}
    outputs, state = application(inputs, times=times)
    return check(inputs, [*outputs, *(outputs[n] for n in repeats if n < len(outputs))], state)
