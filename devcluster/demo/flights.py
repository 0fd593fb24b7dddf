"""The flights' demo, step by step: ``make flights``. Prints; needs what the other demo needs."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from devcluster import s3
from devcluster.demo import flights_analysis, flights_report
from devcluster.demo.application import (
    BUCKET,
    FLIGHTS,
    FLIGHTS_FROM_DUMP,
    Application,
    build_application,
    build_surroundings,
)
from devcluster.demo.console import Narrator, StepFailedError
from devcluster.demo.flights_data import LEFT, Record, records
from devcluster.demo.flights_dump import Dump, bucket, folder, read_dump, save
from devcluster.demo.flights_oracle import BUILT_IN, Hindsight, Weights, expected_state
from devcluster.demo.flights_replay import FlightReplay
from devcluster.demo.installing import have_tidegate
from devcluster.demo.kubernetes import Kubernetes
from devcluster.demo.messages import Messages, described
from devcluster.demo.replay import create_topics, delete_topics
from devcluster.demo.setting_up import clean_up_hint, connect, kubectl_hint, set_up
from devcluster.demo.snapshot_cut import read_records
from devcluster.demo.watch import SECONDS_BETWEEN_POLLS, DecisionWatch, Once, Repeatedly, StatusWatch
from devcluster.environment import Environment

START_SECONDS, CATCH_UP_SECONDS = 300.0, 300.0
MESSAGE_SECONDS, DUMP_SECONDS = 120.0, 400.0
"""The longest that is waited for the end of a message; for one whose state a pod has to write."""
PART_SECONDS = 30.0
"""A part of the records takes so long at least: messages are to come into force while they flow."""
FEWEST = 1_000
QUIET_SECONDS = 3.0
LOOK = {"format": "JSONLines", "resources": {"requests": {"cpu": "100m", "memory": "1500Mi"}}}
"""The payload of a dump's message: its pod finds room beside the application on a small node."""
DUMP = "flights/exports/learned"
"""Where the dump is kept that the application starts from again: in the bucket, outside of its own storage."""


def main() -> int:
    """Show a model that learns while it predicts: looked into, fixed, lost, and begun again from a dump."""
    parser = argparse.ArgumentParser(
        prog="make flights ARGS=…", description=main.__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--name", default="dev", help="the development cluster to use")
    parser.add_argument("--departures", type=int, default=LEFT, help="how many flights leave, from New Year on")
    parser.add_argument("--rate", type=float, default=5_000.0, help="records per second")
    parser.add_argument(
        "--folder", type=Path, default=Path("flights"), help="where picture, dump and model are written"
    )
    options = parser.parse_args()
    if not FEWEST <= options.departures <= LEFT:
        parser.error(f"--departures must be from {FEWEST:,} to {LEFT:,}")
    narrator = Narrator()
    try:
        site = set_up(narrator, options.name)
        with narrator.step("Reading the flights", "make setup"):
            sent = list(records(options.departures))
        FlightsDemo(narrator, site, sent, options.rate, options.folder).run()
    except StepFailedError as failed:
        narrator.failure(failed)
        return 1
    except (RuntimeError, OSError) as error:  # between two steps: a command that failed, a server that is gone
        narrator.failure(StepFailedError("The demo cannot go on", str(error), "make flights starts over"))
        return 1
    except KeyboardInterrupt:
        narrator.say(
            "Interrupted. The cluster is still there; `make flights` starts over, `make cluster-down` removes it."
        )
        return 130
    print("demo: ok")
    return 0


class FlightsDemo:
    """Everything after the environment is there."""

    def __init__(self, narrator: Narrator, site: Environment, sent: Sequence[Record], rate: float, place: Path) -> None:
        self._narrator, self._site, self._records, self._rate, self._place = narrator, site, sent, rate, place
        self._kubernetes: Kubernetes = connect(site)
        self._s3 = s3.client(site.s3_endpoint_host, site.s3_keys)
        prefix = "" if site.own else f"{BUCKET}-"
        self._topic, self._output = f"{prefix}flights", f"{prefix}arrivals"
        self._application, self._again = self._build(FLIGHTS), self._build(FLIGHTS_FROM_DUMP)
        self._again.manifest["spec"]["startFrom"]["exportedState"]["uri"] = f"s3://{BUCKET}/{DUMP}/manifest.json"
        self._messages = Messages(self._kubernetes, self._application)
        self._model: dict[str, Any] = {}
        self._reload: dict[str, str] = {}
        """The payload that brings the model in."""

    def _build(self, file: Path) -> Application:
        options = {"brokers": self._site.kafka_pods, "flights": self._topic, "arrivals": self._output}
        site = self._site
        return build_application(image=site.image_spark, endpoint=site.s3_endpoint_pods, options=options, file=file)

    def run(self) -> None:
        """Run all steps."""
        own = have_tidegate(self._narrator, self._kubernetes, self._site, self._application.namespace)
        self._remove_earlier()
        self._prepare()
        self._apply(self._application, FLIGHTS)
        total = len(self._records)
        with self._watching() as predictions:
            self._send(0, total // 2, {0.5: self._ask_for_a_dump})
            self._catch_up(predictions, total // 2)
            self._analyse("look")
            self._send(total // 2, total * 3 // 4, {0.1: self._send_a_broken_model, 0.5: self._send_a_corrected_model})
            self._await("corrected", "Applied")
            self._catch_up(predictions, total * 3 // 4)
            self._keep_and_lose()
            self._begin_again()
            self._send(total * 3 // 4, total, {})
            self._catch_up(predictions, total)
        self._account(predictions)
        self._hints(own)

    # --- before the data ---

    def _remove_earlier(self) -> None:
        app = self._application
        with self._narrator.step("Deleting what an earlier demo left", self._show()):
            self._messages.forget()
            gone = ("--ignore-not-found", "--timeout=150s")
            self._kubernetes.ctl("delete", "sapp", app.name, "-n", app.namespace, *gone, timeout=160)

    def _prepare(self) -> None:
        topics = {self._topic: 4, self._output: 2}
        remedy = "check that S3 and Kafka answer: make s3-up kafka-up; then make flights again"
        with self._narrator.step(f"Bucket {BUCKET}, topics {', '.join(topics)}, credentials", remedy):
            if BUCKET not in {found["Name"] for found in self._s3.list_buckets()["Buckets"]}:
                self._s3.create_bucket(Bucket=BUCKET)
            delete_topics(self._site.kafka_host, topics)
            create_topics(self._site.kafka_host, topics)
            keys = self._site.s3_keys
            self._kubernetes.apply(
                *build_surroundings(self._application, access_key=keys.access_key, secret_key=keys.secret_key)
            )

    def _apply(self, application: Application, file: Path) -> None:
        with self._narrator.step(f"kubectl apply -f spark_app/samples/{file.name}", self._show()):
            self._kubernetes.apply(application.manifest)
            ready = ("--for=condition=Ready", f"--timeout={START_SECONDS:.0f}s")
            target = (f"sapp/{application.name}", "-n", application.namespace)
            self._kubernetes.ctl("wait", *target, *ready, timeout=START_SECONDS + 10)

    # --- the data ---

    @contextmanager
    def _watching(self) -> Iterator[DecisionWatch]:
        """Show, while the context lasts, the resource and predictions; collect these."""
        status = StatusWatch(self._narrator, self._kubernetes, self._application)
        predictions = DecisionWatch(self._narrator, self._site.kafka_host, self._output, spoken)
        with ExitStack() as stack:
            stack.callback(predictions.close)
            stack.enter_context(Repeatedly(status.check, SECONDS_BETWEEN_POLLS))
            stack.enter_context(Repeatedly(predictions.check, 0.0))
            yield predictions

    def _send(self, begin: int, end: int, actions: Mapping[float, Callable[[], None]]) -> None:
        """Send some of the records; do something when such a share of them is confirmed."""
        part = self._records[begin:end]
        rate = min(self._rate, len(part) / PART_SECONDS)
        title = f"{part[0].time:%d %B} to {part[-1].time:%d %B}: {len(part):,} records at {rate:,.0f} a second"
        due = [Once(action, at=int(share * len(part))) for share, action in actions.items()]
        remedy = "is the broker up? make kafka-up; then make flights again"
        with self._narrator.step(title, remedy, moving=False), self._narrator.bar("records", len(part)) as show:

            def progress(confirmed: int) -> None:
                show(confirmed)
                for action in due:
                    action(confirmed)

            FlightReplay(self._site.kafka_host, self._topic).run(part, progress, rate)

    def _catch_up(self, predictions: DecisionWatch, sent: int) -> None:
        """Wait until everything that is due has been predicted, and a little longer for what is not."""
        departures = sum(not record.is_landing for record in self._records[:sent])
        deadline = time.monotonic() + CATCH_UP_SECONDS
        with self._narrator.step("Waiting for the last predictions", self._show()):
            while len(predictions.ids) < departures or time.monotonic() - predictions.newest_at < QUIET_SECONDS:
                if time.monotonic() > deadline:
                    missing = departures - len(predictions.ids)
                    raise self._trouble(f"{missing:,} predictions did not come within {CATCH_UP_SECONDS:.0f} s")
                time.sleep(0.2)

    # --- messages ---

    def _ask_for_a_dump(self) -> None:
        self._send_message("look", "dump-state", LOOK)

    def _send_a_broken_model(self) -> None:
        text = '{"version": "of half a file", "overall": -5'
        self._send_message("break", "reload-model", self._upload("broken.json", text))

    def _send_a_corrected_model(self) -> None:
        self._await("break", "Failed")
        self._narrator.say("  nobody uses it, and predictions go on with the model before it")
        self._reload = self._upload("model.json", json.dumps(self._model))
        self._send_message("corrected", "reload-model", self._reload)

    def _send_message(self, name: str, kind: str, payload: Any) -> None:
        self._narrator.say(f"ControlMessage {name}: {kind}", "bold yellow")
        self._messages.send(name, kind, payload)

    def _await(self, name: str, phase: str, seconds: float = MESSAGE_SECONDS) -> Mapping[str, Any]:
        """Return the status of a message at its end, which is to be ``phase``."""
        try:
            status = self._messages.await_end(name, seconds)
        except TimeoutError as late:
            raise StepFailedError(f"Message {name}", str(late), self._show()) from late
        self._narrator.say(f"  {name}: {described(status)}", "cyan")
        if status["phase"] != phase:
            raise self._trouble(f"Message {name} is {status['phase']}, and not {phase}: {described(status)}")
        return status

    def _upload(self, name: str, text: str) -> dict[str, str]:
        """Put a model into the bucket; return the payload of its message."""
        content = text.encode()
        self._s3.put_object(Bucket=BUCKET, Key=f"flights/{name}", Body=content)
        uri, digest = f"s3://{BUCKET}/flights/{name}", hashlib.sha256(content).hexdigest()
        return {"name": "delays", "uri": uri, "sha256": digest}

    # --- the model ---

    def _analyse(self, message: str) -> None:
        """Analyse the dump that was made while records flowed."""
        status = self._await(message, "Applied", DUMP_SECONDS)
        place = self._place / "dump"
        with self._narrator.step(f"Fetching the dump into {place}", self._show()):
            save(bucket(self._s3, status["results"]["uri"]), place)
        picture = self._place / "flights.png"
        dump, self._model = flights_analysis.show(folder(place), picture, "by-days", Console())
        self._check(dump)
        (self._place / "model.json").write_text(json.dumps(self._model, indent=1) + "\n")
        self._narrator.say(f"  days differ most: {self._model}", "bold")

    def _check(self, dump: Dump) -> None:
        """Compare a dump with the records that the topic holds before its offsets."""
        ends = dump.offsets.get(self._topic, {})
        with self._narrator.step("Comparing the dump with the records before its offsets", self._show()):
            before = (r for place, r in read_records(self._site.kafka_host, self._topic) if place[1] < ends[place[0]])
            landed = {record["id"] for record in before if record["event"] == "landing"}
            due = expected_state(r for r in self._records if r.is_landing and r.flight.id in landed)
            differences = dump.differences(due)
        if differences or not landed:
            raise StepFailedError("The dump is not what it should be", "\n".join(differences[:10]), self._show())
        numbers = f"{len(dump.total)} carriers, {len(dump.routes)} routes, {len(dump.days):,} days"
        self._narrator.say(f"  {len(landed):,} landings, {numbers}: equal to the last digit", "green")

    def _keep_and_lose(self) -> None:
        """Dump once more, put the dump where it outlives the application, and delete the application with its state."""
        app = self._application
        self._send_message("keep", "dump-state", LOOK)
        status = self._await("keep", "Applied", DUMP_SECONDS)
        place = self._place / "learned"
        with self._narrator.step(f"Keeping the dump in s3://{BUCKET}/{DUMP}", self._show()):
            for path in save(bucket(self._s3, status["results"]["uri"]), place):
                self._s3.put_object(Bucket=BUCKET, Key=f"{DUMP}/{path}", Body=(place / path).read_bytes())
        self._check(read_dump(folder(place)))
        with self._narrator.step(f"kubectl delete sapp {app.name}: its state goes, too", self._show()):
            # While there is a driver, what snapshots of dumps hold is removed by it.
            self._messages.forget()
            self._kubernetes.ctl("delete", "sapp", app.name, "-n", app.namespace, "--timeout=150s", timeout=160)
        left = self._s3.list_objects_v2(Bucket=BUCKET, Prefix=f"apps/{app.namespace}/{app.name}/").get("Contents", [])
        if any(not entry["Key"].endswith("/") for entry in left):
            raise self._trouble(f"The application's storage still holds {left[0]['Key']}")

    def _begin_again(self) -> None:
        """Have a new application start from the dump; messages to the other one are not in force in it."""
        self._apply(self._again, FLIGHTS_FROM_DUMP)
        self._send_message("mend-again", "reload-model", self._reload)
        self._await("mend-again", "Applied")

    # --- after the data ---

    def _account(self, predictions: DecisionWatch) -> None:
        with self._narrator.step("Computing what was due, independently, in plain Python", self._show()):
            hindsight = Hindsight(self._records)
            models = [BUILT_IN, Weights.of(self._model)]
            comparison = flights_report.check(hindsight, predictions.consumed, models)
            found = flights_report.rows(hindsight, predictions.consumed)
        self._narrator.say(f"  {comparison.report()}", "green" if comparison.ok else "red")
        if not comparison.ok:
            raise StepFailedError("The predictions are not the due ones", comparison.report(), self._show())
        if len(found) != len(models):
            raise self._trouble(f"Predictions are of {len(found)} models, and {len(models)} were in force")
        Console().print(flights_report.build_table(found))

    def _hints(self, own: bool) -> None:
        app, ctl = self._application, partial(kubectl_hint, self._site)
        self._narrator.plain(
            f"""
The application still runs, on the state of the dump. To look further:
  {ctl(f"get sapp,ctl -n {app.namespace}")}
  {ctl(f"describe ctl mend-again -n {app.namespace}")}
  {ctl(f"delete sapp {app.name} -n {app.namespace}")}
Picture, dumps and model: {self._place.resolve()}.
Predictions: topic {self._output} at {self._site.kafka_host} (pods: {self._site.kafka_pods}).
What happened: docs/samples.md. To clean up: {clean_up_hint(self._site, app.name, app.namespace, own=own)}"""
        )

    def _show(self) -> str:
        app, ctl = self._application, partial(kubectl_hint, self._site)
        return f"{ctl(f'describe sapp,ctl -n {app.namespace}')}, and see docs/samples.md; then make flights again"

    def _trouble(self, what: str) -> StepFailedError:
        app = self._application
        return StepFailedError(what, self._kubernetes.describe_trouble(app.name, app.namespace), self._show())


def spoken(prediction: Mapping[str, Any]) -> str:
    """Return a prediction for a person: which flight, how late it left and is expected. Pure."""
    flight, _, _ = str(prediction["id"]).partition("@")
    left, expected = _late(prediction["departureDelay"]), _late(round(prediction["expected"]))
    route = f"{prediction['origin']}-{prediction['dest']}"
    return f"{prediction['day']}  {flight:<7} {route}  left {left:<14} expected {expected:<14} ({prediction['model']})"


def _late(minutes: int) -> str:
    return f"{abs(minutes)} min {'late' if minutes > 0 else 'early'}" if minutes else "on time"


if __name__ == "__main__":
    sys.exit(main())
