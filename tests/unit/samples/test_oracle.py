"""The oracle against cases worked out by hand."""

from datetime import UTC, datetime

from devcluster.demo.oracle import expected_decisions
from devcluster.demo.scenario import HOUR, Reading, Record, Setting

START = datetime(2010, 7, 1, tzinfo=UTC)


def reading(hour: int, temperature: float, sensor: str = "seattle+0") -> Reading:
    return Reading(sensor, START + hour * HOUR, temperature)


def setting(hour: float, desired: float, sensor: str = "seattle+0") -> Setting:
    return Setting(sensor, START + hour * HOUR, desired, up_delta=2.0, down_delta=3.0)


def test_a_day_of_one_sensor() -> None:
    records: list[Record] = [
        reading(0, 99.0),  # no setting yet
        setting(1, 60.0),
        reading(1, 62.5),  # too warm, and the setting of the same hour counts
        reading(2, 64.0),  # still too warm: not said again
        reading(3, 60.0),  # right
        reading(4, 57.0),  # at the limit: right
        reading(5, 56.9),  # too cold
        setting(5.5, 50.0),
        reading(6, 56.9),  # the same temperature is too warm now
    ]
    assert [(d["time"], d["decision"], d["desired"]) for d in expected_decisions(records).values()] == [
        ("2010-07-01T01:00:00Z", 1, 60.0),
        ("2010-07-01T05:00:00Z", 0, 60.0),
        ("2010-07-01T06:00:00Z", 1, 50.0),
    ]


def test_a_decision_carries_what_led_to_it() -> None:
    assert expected_decisions([setting(0, 60.0), reading(1, 70.5)]) == {
        "seattle+0@2010-07-01T01:00:00Z": {
            "id": "seattle+0@2010-07-01T01:00:00Z",
            "sensor": "seattle+0",
            "time": "2010-07-01T01:00:00Z",
            "decision": 1,
            "temperature": 70.5,
            "desired": 60.0,
            "upDelta": 2.0,
            "downDelta": 3.0,
        }
    }


def test_sensors_do_not_see_each_other() -> None:
    records: list[Record] = [
        setting(0, 60.0),
        reading(1, 99.0, "seattle+1"),
        setting(1, 99.0, "seattle+1"),
        reading(1, 99.0),
    ]
    assert list(expected_decisions(records)) == ["seattle+0@2010-07-01T01:00:00Z"]
