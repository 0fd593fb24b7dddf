"""A worker fetches a model with its pod's credentials, whatever variables the program sets in the worker's process."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import tidegate_spark
from tidegate_spark.contract.control_protocol import ControlSettings
from tidegate_spark.contract.json_form import to_json
from tidegate_spark.contract.object_paths import Storage
from tidegate_spark.control_log.entries import VERSION, Segment
from tidegate_spark.control_log.reducer import Model, State
from tidegate_testing.serving import serving

CONTENT = b"weights"
PROGRAM = """
import json, os, sys, types
from tidegate_spark.control.worker import worker
from tidegate_spark.storage import start_variables

answer, before = json.loads(sys.argv[1]), sys.argv[2]
exec(before)
worker.Caller = lambda line: types.SimpleNamespace(ask=lambda path, body: answer)
print(worker._here(worker.Line("driver:1", "token")).current("main", 0).model("m").read_bytes().decode())
"""
SCRIPT_SETS = """
os.environ |= {
    "AWS_PROFILE": "nope", "AWS_ACCESS_KEY_ID": "script", "AWS_SECRET_ACCESS_KEY": "x", "AWS_CA_BUNDLE": "/nowhere",
    "HTTP_PROXY": "http://127.0.0.1:1", "HTTPS_PROXY": "http://127.0.0.1:1", "HOME": "/nowhere",
}
"""


class Store:
    """Has one model, and notes by whose key each request is signed."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        outer = self

        class Answering(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                signed = self.headers.get("Authorization", "")
                outer.keys.append(signed.partition("Credential=")[2].partition("/")[0])
                self.send_response(200)
                self.send_header("Content-Length", str(len(CONTENT)))
                self.end_headers()
                self.wfile.write(CONTENT)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self) -> str:
        """Return what a driver answers a worker in the batch in which a model of this store is in force."""
        model = Model("s3://models/m.bin", hashlib.sha256(CONTENT).hexdigest(), 1)
        nothing, state = to_json(Segment(VERSION, ())), to_json(State(1, models={"m": model}))
        return to_json(
            {
                "storage": to_json(Storage("s3://models/app", self.address, path_style_access=True)),
                "control": to_json(ControlSettings()),
                "state": state,
                "messages": nothing,
                "before": nothing,
                "applied": True,
            }
        )


@pytest.fixture
def store() -> Iterator[Store]:
    found = Store()
    with serving(found.server):
        yield found


def loaded(store: Store, folder: Path, before: str, **variables: str) -> str:
    """Return the model, and with whose key it was fetched, in a process that starts with ``variables``."""
    (folder / "tmp").mkdir()
    environment = {
        "PYTHONPATH": str(Path(tidegate_spark.__file__).parents[1]),
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "TMPDIR": str(folder / "tmp"),
        "AWS_EC2_METADATA_DISABLED": "true",
        "TIDEGATE_CREDENTIALS_DIRECTORY": str(folder / "secret"),
        **variables,
    }
    command = [sys.executable, "-c", PROGRAM, store.answer(), before]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == f"{CONTENT.decode()}\n", done.stderr
    (key,) = store.keys
    return key


def mount(folder: Path, key: str) -> None:
    """The kubelet mounts the Secret."""
    (folder / "secret").mkdir()
    (folder / "secret" / "AWS_ACCESS_KEY_ID").write_text(key)
    (folder / "secret" / "AWS_SECRET_ACCESS_KEY").write_text("x")


def test_a_program_s_variables_do_not_keep_its_worker_from_a_model(store: Store, tmp_path: Path) -> None:
    key = loaded(store, tmp_path, SCRIPT_SETS, AWS_ACCESS_KEY_ID="pod", AWS_SECRET_ACCESS_KEY="x")
    assert key == "pod"


def test_a_forked_worker_has_the_variables_of_the_process_that_forked_it(store: Store, tmp_path: Path) -> None:
    forked = f"{SCRIPT_SETS}\nif os.fork(): sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))"
    assert loaded(store, tmp_path, forked, AWS_ACCESS_KEY_ID="pod", AWS_SECRET_ACCESS_KEY="x") == "pod"


def test_a_worker_finds_its_pod_s_profile_although_the_program_moves_home(store: Store, tmp_path: Path) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text("[etl]\naws_access_key_id=profile\naws_secret_access_key=x\n")
    assert loaded(store, tmp_path, SCRIPT_SETS, AWS_PROFILE="etl") == "profile"


def test_a_driver_s_foreach_batch_has_a_secret_that_came_after_its_start(store: Store, tmp_path: Path) -> None:
    """The pod waited for the Secret: its variables are of before that, and the mounted files are there."""
    mount(tmp_path, "secret")
    assert loaded(store, tmp_path, f"start_variables.note()\n{SCRIPT_SETS}") == "secret"


def test_a_worker_fetches_with_the_keys_that_are_in_the_secret_now(store: Store, tmp_path: Path) -> None:
    """Those of the executor's start may have expired since."""
    mount(tmp_path, "new")
    assert loaded(store, tmp_path, "", AWS_ACCESS_KEY_ID="old", AWS_SECRET_ACCESS_KEY="x") == "new"
