"""What the bench of hostile objects makes of the audit log and of the operator's metrics. Starts no server."""

from collections.abc import Mapping

import pytest
from prometheus_client import generate_latest

from tests.bench.audit import Request
from tests.bench.hostile_results import ALONE, ARRIVING, PRESENT, Delays, Window, latencies, results
from tidegate.wiring.metrics import OperatorMetrics

EDITOR, OPERATOR = "tidegate-bench", "tidegate-operator/"


def request(agent: str, name: str, received: float, *, part: str = "", code: int = 200) -> Request:
    return Request("patch", "streamingapps", part, "bench", name, agent, code, received, received + 0.25)


def edit(name: str, at: float) -> Request:
    return request(EDITOR, name, at)


def answer(name: str, at: float, code: int = 200) -> Request:
    return request(f"{OPERATOR}1", name, at, part="status", code=code)


def delays(at_most: Mapping[float, float], total: float) -> Delays:
    return Delays(at_most, total)


def window(kind: str, start: float = 0.0, end: float = 100.0, *, late: float = 0.0, mib: float = 50.0) -> Window:
    return Window(kind, start, end, 0, delays({0.1: 99.0, 1.0: 100.0}, 1.0 + late), mib)


def test_an_edit_takes_until_the_first_status_of_its_application_that_follows_is_stored() -> None:
    log = [answer("a", 0.5), edit("a", 1.0), answer("b", 1.5), answer("a", 2.0, code=409), answer("a", 3.0)]
    assert latencies(log, window(ALONE), EDITOR, OPERATOR) == [2.25]


def test_edits_of_other_windows_and_other_clients_do_not_count() -> None:
    log = [edit("a", 1.0), answer("a", 1.5), edit("a", 11.0), request("kubectl/1", "a", 12.0), answer("a", 12.0)]
    assert latencies(log, window(ALONE, 10.0, 20.0), EDITOR, OPERATOR) == [1.25]


def test_an_edit_without_an_answer_is_no_figure() -> None:
    with pytest.raises(ValueError, match="an edit of a was not answered"):
        latencies([edit("a", 1.0)], window(ALONE), EDITOR, OPERATOR)


def test_delays_are_read_from_what_the_operator_says_of_itself() -> None:
    operator = OperatorMetrics()
    operator.observe_loop_delay(0.2)
    before = Delays.of(generate_latest(operator.registry).decode())
    for _ in range(99):
        operator.observe_loop_delay(0.004)
    operator.observe_loop_delay(0.7)
    found = Delays.of(generate_latest(operator.registry).decode()).since(before)
    assert found.mean == pytest.approx((99 * 0.004 + 0.7) / 100)
    assert (found.bound(0.99), found.bound(1)) == (0.005, 1.0)


def test_each_way_is_compared_with_the_applications_alone() -> None:
    windows = [
        window(ALONE),
        window(PRESENT, late=1.0, mib=60.0),
        window(PRESENT, late=3.0),
        window(ARRIVING, mib=90.0),
    ]
    found = results(windows, {ALONE: [0.1, 0.2], PRESENT: [0.1, 0.4], ARRIVING: [0.3, 0.6]})
    assert (found["p50_ratio_present"], found["p99_ratio_present"]) == pytest.approx((1.0, 2.0))
    assert (found["p50_ratio_arriving"], found["p99_ratio_arriving"]) == pytest.approx((3.0, 3.0))
    assert (found["peak_rss_mib_alone"], found["peak_rss_mib_present"], found["peak_rss_mib_arriving"]) == (50, 60, 90)
    assert (found["loop_delay_mean_ms_alone"], found["loop_delay_mean_ms_present"]) == (10.0, 30.0)
    assert (found["loop_delay_p99_below_ms_present"], found["loop_delay_all_below_ms_present"]) == (100.0, 1000.0)
