"""What is replayed: real data, in the order that the sample asks of its producers."""

from collections import Counter
from datetime import UTC, datetime

import pytest

from devcluster.demo.oracle import expected_decisions
from devcluster.demo.scenario import CITIES, HOUR, Reading, Scenario, Setting, encode, measured, series

MISSING = datetime(2010, 3, 14, 3, tzinfo=UTC)


@pytest.mark.parametrize("city", CITIES)
def test_a_city_has_every_hour_of_the_year_but_one(city: str) -> None:
    hours = series(city)
    year = {datetime(2010, 1, 1, tzinfo=UTC) + hour * HOUR for hour in range(8760)}
    assert len(hours) == 8759
    assert year - set(hours) == {MISSING}


@pytest.mark.parametrize("city", CITIES)
def test_temperatures_are_degrees_fahrenheit(city: str) -> None:
    july = [temperature for time, temperature in series(city).items() if time.month == 7]
    assert 55 < sum(july) / len(july) < 70


def test_a_sensor_reports_its_city_shifted_and_a_missing_hour_is_no_reading() -> None:
    noon = datetime(2010, 7, 1, 12, tzinfo=UTC)
    assert measured("seattle+7", noon) == series("seattle")[noon + 7 * HOUR]
    assert measured("seattle+7", MISSING - 7 * HOUR) is None


def test_the_same_scenario_gives_the_same_records() -> None:
    first, second = (list(map(encode, Scenario(readings=3_000).records())) for _ in range(2))
    assert first == second


def test_the_total_is_exact_and_the_sensors_are_many() -> None:
    records = list(Scenario(readings=5_001).records())
    sensors = Counter(r.sensor for r in records if isinstance(r, Reading))
    assert sum(sensors.values()) == 5_001
    assert len(sensors) >= 200


def test_records_are_in_order_of_time_and_settings_come_first() -> None:
    order = [(r.time, isinstance(r, Reading)) for r in Scenario().records()]
    assert order == sorted(order)


def test_settings_change_along_the_way_on_the_hour_and_between() -> None:
    settings = [r for r in Scenario().records() if isinstance(r, Setting)]
    assert min(Counter(s.sensor for s in settings).values()) >= 3
    assert {s.time.minute for s in settings} == {0, 30}


def test_some_sensors_are_not_controlled_at_first() -> None:
    scenario = Scenario(readings=240)
    settings = {r.sensor for r in scenario.records() if isinstance(r, Setting)}
    assert 0 < len(set(scenario.sensors()) - settings) < 20


def test_most_sensors_get_both_decisions() -> None:
    by_sensor: dict[str, set[int]] = {}
    for decision in expected_decisions(Scenario().records()).values():
        by_sensor.setdefault(decision["sensor"], set()).add(decision["decision"])
    assert sum(values == {0, 1} for values in by_sensor.values()) > 200


@pytest.mark.parametrize(
    ("arguments", "named"),
    [({"readings": 0}, "readings"), ({"readings": 10**9}, "readings"), ({"shifts": 0}, "shifts")],
)
def test_what_the_data_does_not_hold_is_refused_by_name(arguments: dict[str, int], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Scenario(**arguments)  # type: ignore[arg-type] # deliberately only integers


def test_the_largest_scenario_can_be_replayed_to_its_end() -> None:
    scenario = Scenario(readings=Scenario(shifts=2).most_readings(), shifts=2)
    assert sum(isinstance(r, Reading) for r in scenario.records()) == scenario.readings
