"""A dump is read as it was written, its analysis finds and draws what was put in; the report beside its yardsticks."""

import dataclasses
import hashlib
import io
import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from devcluster.demo import flights_data
from devcluster.demo.flights import spoken
from devcluster.demo.flights_analysis import Spread, analyse, build_table, draw, main, show, spread
from devcluster.demo.flights_dump import Dump, DumpError, Tally, bucket, folder, read_dump, save
from devcluster.demo.flights_oracle import BUILT_IN, Hindsight, Weights, expected_state
from devcluster.demo.flights_report import build_table as build_report
from devcluster.demo.flights_report import check, rows
from samples.flight_delays import read_model

TWO_DAYS = 1_700
OFFSETS = {"0": '{"flights":{"0":7,"1":12}}', "1": '{"tidegate-control":3}'}


def tally(minutes: list[int]) -> Tally:
    return Tally(len(minutes), sum(minutes), sum(each * each for each in minutes))


def write_dump(place: Path, state: dict[str, Any]) -> Path:
    """Write a state as a dump of it has it."""
    tables = []
    for name, groups in state.items():
        lines = []
        for (carrier, *rest), values in groups.items():
            value = dict(zip(("flights", "minutes", "squares"), values, strict=True))
            line = {"key": {"carrier": carrier}}
            if name == "total":
                line["value"] = value
            else:
                fields = ("origin", "dest") if name == "routes" else ("day",)
                line |= {"user_map_key": dict(zip(fields, rest, strict=True)), "user_map_value": value}
            lines.append(json.dumps(line))
        content = "".join(f"{line}\n" for line in lines).encode()
        file = place / "arrivals" / f"0-{name}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        tables.append({"name": name, "file": f"arrivals/{file.name}", "sha256": digest})
    queries = {"arrivals": {"batch": 4, "offsets": OFFSETS}}
    (place / "manifest.json").write_text(json.dumps({"format": "JSONLines", "queries": queries, "tables": tables}))
    return place


@pytest.fixture(scope="module")
def state() -> Any:
    return expected_state(flights_data.records(TWO_DAYS))


@pytest.fixture
def place(tmp_path: Path, state: Any) -> Path:
    return write_dump(tmp_path / "dump", state)


def test_a_dump_is_read_with_where_its_sources_go_on(place: Path, state: Any) -> None:
    dump = read_dump(folder(place))
    assert dump.differences(state) == []
    assert dump.offsets == {"flights": {0: 7, 1: 12}}
    assert sum(found.flights for found in dump.total.values()) > 1_400


def test_what_differs_from_what_is_due_is_named(place: Path, state: Any) -> None:
    dump = read_dump(folder(place))
    flights, minutes, squares = state["routes"]["HA", "JFK", "HNL"]
    other = {**state, "routes": {**state["routes"], ("HA", "JFK", "HNL"): (flights, minutes + 1, squares)}}
    (difference,) = dump.differences(other)
    assert difference.startswith("routes HA/JFK/HNL: ")
    without = {**state, "days": {}}
    assert len(dump.differences(without)) == len(dump.days)


def test_a_dump_that_is_damaged_or_of_something_else_is_refused(place: Path) -> None:
    file = place / "arrivals" / "0-days.jsonl"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(DumpError, match=r"arrivals/0-days\.jsonl is not what the manifest says"):
        read_dump(folder(place))
    manifest = json.loads((place / "manifest.json").read_text())
    for changed, message in (({"tables": manifest["tables"][:1]}, "no days, routes"), ({"format": "CSV"}, "is in CSV")):
        (place / "manifest.json").write_text(json.dumps(manifest | changed))
        with pytest.raises(DumpError, match=message):
            read_dump(folder(place))


class Client:
    """An object store with one bucket's worth of files."""

    def __init__(self, place: Path, prefix: str) -> None:
        self._place, self._prefix = place, prefix

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803 - boto3's
        assert Bucket == "b"
        return {"Body": io.BytesIO((self._place / Key.removeprefix(self._prefix)).read_bytes())}


@pytest.mark.parametrize("uri", ["s3://b/apps/x/exports/e-1", "s3://b/apps/x/exports/e-1/manifest.json"])
def test_a_dump_in_a_bucket_is_saved_whole(place: Path, tmp_path: Path, uri: str, state: Any) -> None:
    paths = save(bucket(Client(place, "apps/x/exports/e-1/"), uri), tmp_path / "saved")
    assert paths[-1] == "manifest.json"
    assert read_dump(folder(tmp_path / "saved")).differences(state) == []


# --- what is found ---


def made_up(seed: int, between: float, within: float) -> dict[tuple[str, str], Tally]:
    """Return groups whose means and flights are scattered as is said (standard deviations)."""
    chance, found = random.Random(seed), {}
    for carrier, mean in (("A", -10), ("B", 5)):
        for number in range(300):
            centre = chance.gauss(mean, between)
            found[carrier, str(number)] = tally([round(chance.gauss(centre, within)) for _ in range(3 + number % 60)])
    return found


@pytest.mark.parametrize(("between", "within"), [(4.0, 18.0), (8.0, 18.0), (2.0, 5.0)])
def test_the_analysis_finds_by_how_much_groups_differ_and_how_much_is_chance(between: float, within: float) -> None:
    found = spread(made_up(1, between, within))
    assert found.groups == 600
    assert math.sqrt(found.within) == pytest.approx(within, rel=0.03)
    assert math.sqrt(found.between) == pytest.approx(between, rel=0.1)
    assert found.weight == pytest.approx((within / between) ** 2, rel=0.25)


def test_groups_that_differ_by_chance_alone_are_believed_little_or_never() -> None:
    weights = [spread(made_up(seed, 0.0, 18.0)).weight for seed in range(4)]
    assert all(weight is None or weight > 200 for weight in weights)
    assert Spread(3, 10.0, -0.1).weight is None


def test_too_few_flights_are_said_to_be_too_few() -> None:
    with pytest.raises(DumpError, match="too few flights"):
        spread({("A", "1"): Tally(1, 5, 25), ("A", "2"): Tally(1, 6, 36)})


def test_the_model_that_is_made_is_one_that_the_sample_reads(place: Path, tmp_path: Path) -> None:
    model, picture = tmp_path / "model.json", tmp_path / "flights.png"
    code = main_with([str(place), "--picture", str(picture), "--model", str(model), "--version", "2"])
    assert code == 0
    read = read_model(model)
    assert read.version == "2"
    # After two days of real flights already: days differ more than routes, so that fewer flights say more.
    assert read.day_weight is not None
    assert picture.read_bytes().startswith(b"\x89PNG")


def main_with(arguments: list[str]) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["flights_analysis", *arguments])
        return main()


def test_a_folder_without_a_dump_is_an_error_with_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main_with([str(tmp_path)]) == 1
    assert "manifest.json" in capsys.readouterr().err


def test_the_picture_is_drawn_of_a_dump_in_which_days_do_not_differ(tmp_path: Path, place: Path) -> None:
    dump = read_dump(folder(place))
    finding = analyse(dump)
    same = dataclasses.replace(finding, days=Spread(5, 300.0, -1.0))
    draw(tmp_path / "same.png", dump, same)
    assert (tmp_path / "same.png").read_bytes().startswith(b"\x89PNG")
    assert same.model("2")["dayWeight"] is None
    console = Console(file=io.StringIO(), width=120)
    console.print(build_table(same))
    assert isinstance(console.file, io.StringIO)
    assert "never" in console.file.getvalue()


def test_what_is_shown_is_the_dump_and_a_model_of_it(place: Path, tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=120)
    dump, model = show(folder(place), tmp_path / "p.png", "by-days", console)
    assert isinstance(dump, Dump)
    assert list(model) == ["version", "overall", "carrierWeight", "routeWeight", "dayWeight"]


# --- the report ---


@pytest.fixture(scope="module")
def hindsight() -> Hindsight:
    return Hindsight(flights_data.records(TWO_DAYS))


DAYS = Weights("days", -5.0, 20.0, 20.0, 5.0)


def predictions(hindsight: Hindsight, fixed_from: int) -> list[dict[str, Any]]:
    numbers = {flight.id: number for number, flight in enumerate(hindsight.flights())}
    return list(hindsight.predictions(lambda flight: DAYS if numbers[flight] >= fixed_from else BUILT_IN).values())


def test_predictions_that_are_due_agree_and_each_model_has_a_row(hindsight: Hindsight) -> None:
    made = predictions(hindsight, 1_000)
    assert check(hindsight, made, [BUILT_IN, DAYS]).ok
    first, second = rows(hindsight, made)
    assert (first.model, second.model) == ("built-in", "days")
    assert first.predicted == first.built_in
    assert second.predicted != second.built_in
    assert first.as_it_left != first.one_mean
    console = Console(file=io.StringIO(), width=160)
    console.print(build_report([first, second]))
    assert isinstance(console.file, io.StringIO)
    assert str(second.predicted) in console.file.getvalue()


def test_a_score_is_that_of_the_errors_one_knows(hindsight: Hindsight) -> None:
    made = predictions(hindsight, 10_000)
    (row,) = rows(hindsight, made)
    errors = [f.departure_delay - f.arrival_delay for f in hindsight.flights() if f.arrival_delay is not None]
    assert row.flights == len(errors)
    assert row.as_it_left.mae == pytest.approx(sum(map(abs, errors)) / len(errors))
    assert row.as_it_left.rmse == pytest.approx(math.sqrt(sum(e * e for e in errors) / len(errors)))


def test_one_minute_more_an_unknown_model_and_a_way_back_to_an_earlier_one_are_wrong(hindsight: Hindsight) -> None:
    made = predictions(hindsight, 1_000)
    last = {prediction["carrier"]: number for number, prediction in enumerate(made)}["UA"]
    for change in (
        {"expected": made[last]["expected"] + 1},
        {"model": "unheard of"},
        {"model": "built-in", "expected": hindsight.expected(made[last]["id"], BUILT_IN)},
    ):
        changed = [*made[:last], {**made[last], **change}, *made[last + 1 :]]
        comparison = check(hindsight, changed, [BUILT_IN, DAYS])
        assert comparison.wrong == (made[last]["id"],)
    missing = check(hindsight, made[:-1], [BUILT_IN, DAYS])
    assert missing.missing == (made[-1]["id"],)
    assert missing.report().startswith(f"{len(made):,} predictions expected")


def test_a_prediction_is_readable() -> None:
    prediction: dict[str, Any] = {"id": "UA1545@2013-01-01T10:15Z", "origin": "EWR", "dest": "IAH", "day": "2013-01-01"}
    prediction |= {"departureDelay": 2, "expected": -3.66, "model": "built-in"}
    message = spoken(prediction)
    assert message == "2013-01-01  UA1545  EWR-IAH  left 2 min late     expected 4 min early    (built-in)"
