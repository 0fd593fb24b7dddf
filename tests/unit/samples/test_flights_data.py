"""What is replayed: a year of real flights, in the order in which one could have known of them."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from devcluster.demo.flights_data import FLIGHTS, LANDED, LEFT, Record, encode, read_flights, records


@pytest.fixture(scope="module")
def year() -> list[Record]:
    return list(records())


def test_every_flight_that_left_departs_once_and_every_one_that_landed_lands_once(year: list[Record]) -> None:
    departures = Counter(record.flight.id for record in year if not record.is_landing)
    landings = Counter(record.flight.id for record in year if record.is_landing)
    assert (len(departures), len(landings)) == (LEFT, LANDED)
    assert {*departures.values(), *landings.values()} == {1}
    assert landings.keys() <= departures.keys()
    assert FLIGHTS - LEFT == 8_255


def test_records_come_in_order_of_time_and_a_landing_after_its_departure(year: list[Record]) -> None:
    times = [record.time for record in year]
    assert times == sorted(times)
    left: set[str] = set()
    for record in year:
        if record.is_landing:
            assert record.flight.id in left
        else:
            left.add(record.flight.id)


def test_the_first_flight_of_the_year_is_as_the_file_has_it(year: list[Record]) -> None:
    flight = {"id": "UA1545@2013-01-01T10:15Z", "carrier": "UA", "origin": "EWR", "dest": "IAH", "day": "2013-01-01"}
    first = {"event": "departure", **flight, "departureDelay": 2}
    assert json.loads(encode(year[0])) == first
    landing = next(record for record in year if record.is_landing and record.flight.id == flight["id"])
    assert json.loads(encode(landing)) == first | {"event": "landing", "arrivalDelay": 11}
    # 227 minutes in the air, and half an hour.
    assert landing.time == datetime(2013, 1, 1, 10, 17, tzinfo=UTC) + timedelta(minutes=227 + 30)


def test_a_day_is_new_yorks(year: list[Record]) -> None:
    late = next(record.flight for record in year if record.flight.left.hour == 3)
    assert late.day == f"{late.left - timedelta(hours=5):%Y-%m-%d}"


def test_delays_at_arrival_are_those_of_the_data_set() -> None:
    delays = [flight.arrival_delay for flight in read_flights() if flight.arrival_delay is not None]
    assert sum(delays) / len(delays) == pytest.approx(6.895377, abs=1e-6)


def test_a_smaller_replay_is_the_beginning_of_the_whole(year: list[Record]) -> None:
    some = list(records(500))
    assert some == year[: len(some)]
    assert sum(not record.is_landing for record in some) == 500


@pytest.mark.parametrize("departures", [0, LEFT + 1])
def test_more_flights_than_there_are_and_none_are_refused(departures: int) -> None:
    with pytest.raises(ValueError, match="departures must be from 1 to 328,521"):
        next(iter(records(departures)))
