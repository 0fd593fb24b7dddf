"""An application that tells its secrets to everybody: none of them is seen outside of its process."""

from pathlib import Path

from tidegate_spark.contract.protocol import ACCESS_KEY, SECRET_KEY, SECRET_VARIABLES
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.driver_process import TOKEN, DriverProcess, ObjectStore

from .conftest import SECRET, StartDriver

DATABASE = "correct horse battery"
IMPORTS = "a secret from another cluster"
PLANTED = {
    "an application's own": DATABASE,
    "the storage's": SECRET,
    "the agent's token": TOKEN,
    "an imported snapshot's": IMPORTS,
}


def reported_by(driver: DriverProcess, object_store: ObjectStore) -> dict[str, str]:
    """Return everything that leaves the process when it has ended, by where it goes."""
    bucket = driver.config.storage.bucket
    stored = {key: object_store.text(bucket, key) for key in object_store.keys(bucket, "") if not key.endswith("/")}
    return {"output": driver.output, "termination": (driver.folder / "termination").read_text(), **stored}


def test_no_planted_secret_is_seen_in_output_reports_metrics_termination_or_storage(
    start_driver: StartDriver, object_store: ObjectStore, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / ACCESS_KEY).write_text("imports-access")
    (beside / SECRET_KEY).write_text(IMPORTS)
    variables = {"DATABASE": DATABASE, SECRET_VARIABLES: "DATABASE"}
    variables["TIDEGATE_ORIGIN_CREDENTIALS_DIRECTORY"] = str(beside)
    driver = start_driver("leaking", "leaking.py", args=(str(go),), own_jvm=True, variables=variables)
    driver.await_batch(0)
    reported = {path: driver.status(path)[1] for path in ("/metrics", "/healthz", "/readyz")}
    reported["report"] = driver.command("GET", "/v1/progress")[1]
    reported["refusal"] = driver.command("GET", "/v1/progress", token="wrong")[1]
    assert "CheckpointRedirected" in reported["report"]
    go.touch()
    assert driver.exit_code() == 1, driver.output[-3000:]
    reported |= reported_by(driver, object_store)
    assert any("/logs/" in place for place in reported)
    seen = [(whose, place) for whose, secret in PLANTED.items() for place, text in reported.items() if secret in text]
    assert seen == []
    # What is left says what happened.
    assert driver.termination.reason is Reason.APPLICATION_FAILED
    assert driver.termination.exception == "PermissionError"
    message = ", ".join(["'[redacted]'"] * len(PLANTED))
    assert f"does not let us in with ({message})" in driver.termination.message
    # The stored log: here, unlike in a container, both outputs go to one file, where pieces of their lines may mix.
    (log,) = [text for place, text in reported.items() if place.endswith("/driver.log")]
    assert log.count("told: [redacted]") == len(PLANTED)
    assert log.count("in pieces: [redacted]") == len(PLANTED)
    assert "told by the JVM: ('[redacted]'" in log
