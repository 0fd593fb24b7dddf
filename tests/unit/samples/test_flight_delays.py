"""The sample's core against the oracle: whatever the batches are, what is predicted and learned is the same."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devcluster.demo import flights_data, flights_oracle
from devcluster.demo.flights_data import Record
from devcluster.demo.flights_oracle import Hindsight, Weights, expected_state
from devcluster.demo.flights_report import check
from samples.flight_delays import BUILT_IN, MOST_DAYS, Flight, Learned, Model, Tally, follow, predict, read_model, row

MODEL = {"version": "2", "overall": -5.5, "carrierWeight": 3, "routeWeight": 2, "dayWeight": 1.5}
SECOND = Model("2", -5.5, 3.0, 2.0, 1.5)
NEW_YEAR = datetime(2013, 1, 1, tzinfo=UTC)


def flight(record: Record) -> Flight:
    """Return a record as the sample reads it."""
    of = record.flight
    landed = of.arrival_delay if record.is_landing else None
    return Flight(of.id, of.carrier, of.origin, of.dest, of.day, of.departure_delay, landed)


def run(batches: Iterable[tuple[Sequence[Record], Model]]) -> tuple[dict[str, Learned], list[dict[str, Any]]]:
    """Return what is known of each carrier in the end, and all predictions, batch by batch."""
    learned: dict[str, Learned] = defaultdict(Learned)
    predictions: list[dict[str, Any]] = []
    for records, model in batches:
        of_carrier = defaultdict(list)
        for record in records:
            of_carrier[record.flight.carrier].append(flight(record))
        for carrier, flights in of_carrier.items():
            learned[carrier], made = follow(learned[carrier], flights, model)
            predictions += [row(prediction).asDict() for prediction in made]
    return learned, predictions


def tallies(learned: dict[str, Learned]) -> dict[str, flights_oracle.Tallies]:
    """Return what is known as the oracle says it."""
    known = {carrier: of for carrier, of in learned.items() if of.total.flights}
    return {
        "total": {(carrier,): plain(of.total) for carrier, of in known.items()},
        "routes": {(carrier, *route): plain(t) for carrier, of in known.items() for route, t in of.routes.items()},
        "days": {(carrier, day): plain(t) for carrier, of in known.items() for day, t in of.days.items()},
    }


def plain(tally: Tally) -> tuple[int, int, int]:
    return tally.flights, tally.minutes, tally.squares


def flown(number: int, drawn: tuple[str, str, int, int, int | None]) -> flights_data.Flight:
    carrier, dest, day, departure, arrival = drawn
    left = NEW_YEAR + timedelta(days=day, minutes=number)
    air = None if arrival is None else timedelta(hours=1)
    date = f"{NEW_YEAR + timedelta(days=day):%Y-%m-%d}"
    return flights_data.Flight(f"{carrier}{number}", carrier, "JFK", dest, date, left, departure, arrival, air)


@st.composite
def cut_flights(draw: st.DrawFn) -> tuple[list[Record], list[int]]:
    """Records in their order, and where batches end."""
    delays = st.integers(-60, 300)
    of = st.tuples(st.sampled_from("AB"), st.sampled_from("XYZ"), st.integers(0, 120), delays, st.none() | delays)
    flights = [flown(number, each) for number, each in enumerate(draw(st.lists(of, max_size=40)))]
    records = [Record(each, False) for each in flights] + [Record(each, True) for each in flights if each.in_the_air]
    records.sort(key=lambda record: record.time)
    return records, sorted(draw(st.lists(st.integers(0, len(records)), max_size=6)))


@given(cut_flights(), st.integers(0, 6))
def test_predictions_and_what_is_learned_are_the_oracles_however_the_input_is_cut(
    cut: tuple[list[Record], list[int]], fixed: int
) -> None:
    records, ends = cut
    cuts = list(pairwise([0, *ends, len(records)]))
    batches = [(records[a:b], BUILT_IN if number < fixed else SECOND) for number, (a, b) in enumerate(cuts)]
    learned, predictions = run(batches)
    assert tallies(learned) == expected_state(records)
    comparison = check(Hindsight(records), predictions, [flights_oracle.BUILT_IN, Weights.of(MODEL)])
    assert comparison.expected == sum(not record.is_landing for record in records)
    assert comparison.ok, comparison.report()


@pytest.fixture(scope="module")
def january() -> list[Record]:
    """The first days of the data set."""
    return list(flights_data.records(3_000))


def test_of_real_flights_predictions_are_the_oracles_and_a_model_changes_them_from_one_batch_on(
    january: list[Record],
) -> None:
    parts = [january[at : at + 701] for at in range(0, len(january), 701)]
    learned, predictions = run((part, SECOND if number > 3 else BUILT_IN) for number, part in enumerate(parts))
    comparison = check(Hindsight(january), predictions, [flights_oracle.BUILT_IN, Weights.of(MODEL)])
    assert comparison.ok, comparison.report()
    assert {prediction["model"] for prediction in predictions} == {"built-in", "2"}
    assert tallies(learned) == expected_state(january)


def test_an_application_that_starts_from_what_another_one_learned_goes_on_as_that_would_have(
    january: list[Record],
) -> None:
    whole, all_of_them = run([(january, BUILT_IN)])
    half, first = run([(january[:2000], BUILT_IN)])
    second: list[dict[str, Any]] = []
    for carrier, learned in whole.items():
        rest = [flight(record) for record in january[2000:] if record.flight.carrier == carrier]
        after, made = follow(half[carrier], rest, BUILT_IN)
        assert after == learned
        second += [row(prediction).asDict() for prediction in made]
    by_id = {prediction["id"]: prediction for prediction in first + second}
    assert by_id == {prediction["id"]: prediction for prediction in all_of_them}


# --- by hand ---

KNOWN = Learned(Tally(30, -150, 4000), {("JFK", "LAX"): Tally(10, -100, 2000)}, {"2013-07-01": Tally(5, 50, 900)})
TO_LOS_ANGELES = Flight("AA1@…", "AA", "JFK", "LAX", "2013-07-01", 12)


def test_a_carrier_that_was_never_seen_arrives_as_late_as_it_left() -> None:
    assert predict(Learned(), TO_LOS_ANGELES, BUILT_IN).expected == 12.0


def test_a_routes_mean_is_drawn_to_its_carriers_and_that_to_the_mean_of_all() -> None:
    carrier = (-150 + 20 * 0.0) / (30 + 20)
    route = (-100 + 20 * carrier) / (10 + 20)
    assert predict(KNOWN, TO_LOS_ANGELES, BUILT_IN).expected == pytest.approx(12 + route)


def test_a_model_for_which_days_count_adds_what_the_day_loses_beside_the_carrier() -> None:
    model = Model("days", 0.0, 20.0, 20.0, 5.0)
    carrier = -150 / 50
    without = predict(KNOWN, TO_LOS_ANGELES, BUILT_IN).expected
    assert predict(KNOWN, TO_LOS_ANGELES, model).expected == pytest.approx(without + (50 + 5 * carrier) / 10 - carrier)
    another_day = TO_LOS_ANGELES._replace(day="2013-07-02")
    assert predict(KNOWN, another_day, model).expected == pytest.approx(without)


def test_a_flight_is_predicted_before_it_is_learned_from() -> None:
    landed = TO_LOS_ANGELES._replace(arrival_delay=100)
    after, (prediction,) = follow(KNOWN, [TO_LOS_ANGELES, landed], BUILT_IN)
    assert prediction == predict(KNOWN, TO_LOS_ANGELES, BUILT_IN)
    assert after.total == Tally(31, -150 + 88, 4000 + 88 * 88)


def test_what_was_known_before_a_batch_is_not_changed_by_it() -> None:
    follow(KNOWN, [TO_LOS_ANGELES._replace(arrival_delay=100)], BUILT_IN)
    assert KNOWN.routes[("JFK", "LAX")] == Tally(10, -100, 2000)


def test_a_carrier_keeps_its_newest_days_and_no_more() -> None:
    days = [f"{NEW_YEAR + timedelta(days=number):%Y-%m-%d}" for number in range(MOST_DAYS + 20)]
    landings = [TO_LOS_ANGELES._replace(day=day, arrival_delay=12) for day in days]
    learned, _ = follow(Learned(), [*landings, landings[0]], BUILT_IN)
    assert sorted(learned.days) == days[-MOST_DAYS:]
    assert learned.total.flights == len(days) + 1


def test_a_model_is_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "model"
    file.write_text(json.dumps(MODEL))
    assert read_model(file) == SECOND
    file.write_text(json.dumps(MODEL | {"dayWeight": None}))
    assert read_model(file) == SECOND._replace(day_weight=None)


@pytest.mark.parametrize(
    "text",
    [
        '{"version": "of half a file", "overall": -5',
        "[]",
        "{}",
        json.dumps(MODEL | {"routeWeight": 0}),
        json.dumps(MODEL | {"dayWeight": -1}),
        json.dumps(MODEL | {"overall": float("nan")}),
        json.dumps(MODEL | {"carrierWeight": "many"}),
        json.dumps({name: value for name, value in MODEL.items() if name != "dayWeight"}),
    ],
)
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "model"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"."):
        read_model(file)
