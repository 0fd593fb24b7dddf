"""A JVM that is started ahead is used, or ended; it never outlives its driver. Real processes, which are no JVMs."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError

import tidegate_spark
from tidegate_spark.contract.protocol import ACCESS_KEY, SECRET_KEY, DriverConfig, ExecutorSettings, Storage, to_json
from tidegate_spark.contract.rehearsal_protocol import Rehearsal
from tidegate_spark.jvm import jvm_prestart, last_script, launching
from tidegate_spark.jvm.jvm_command import FORESEEN, digest_of
from tidegate_spark.jvm.jvm_prestart import GATEWAY_PORT, GATEWAY_SECRET, HeadStart
from tidegate_spark.jvm.last_script import Asked
from tidegate_spark.process.environment import Environment, inherited_variables
from tidegate_spark.process.spark import sparkconf
from tidegate_testing.waiting import wait_for

SECRET = "very-secret-value"
GATEWAYS = "the-secret-of-the-gateway"
CONFIG = DriverConfig(
    app="a",
    namespace="n",
    uid="u",
    epoch=7,
    lineage=3,
    pod_name="a-driver",
    main="local:///m.py",
    storage=Storage("s3://b/p"),
    executor=ExecutorSettings(1, "i", "IfNotPresent", "sa", "a-e7"),
    credentials_secret="keys",
)
JVM = f"""
import json, os, struct, sys, time
folder, how = sys.argv[1:3]
def put(name, content):
    with open(folder + "/" + name + ".new", "wb") as file:
        file.write(content)
    os.rename(folder + "/" + name + ".new", folder + "/" + name)
put("pid", str(os.getpid()).encode())
put("told", json.dumps([sys.argv[3:], dict(os.environ)]).encode())
if how == "fails":
    sys.exit(3)
if how == "works":
    door = os.environ["_PYSPARK_DRIVER_CONN_INFO_PATH"]
    with open(door + ".new", "wb") as file:
        file.write(struct.pack(">ii", 4711, {len(GATEWAYS)}) + b"{GATEWAYS}")
    os.rename(door + ".new", door)
sys.stdin.read()
"""


class World:
    """A pod's folders, and the command of a JVM that came up in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("work", "credentials", "spark/jars"):
            (folder / name).mkdir(parents=True)
        (folder / "credentials" / ACCESS_KEY).write_text("access")
        self.renew(SECRET)
        self.variables = {
            "PATH": os.environ["PATH"],
            "SPARK_HOME": str(folder / "spark"),
            "TIDEGATE_MASTER": "local[2]",
            "TIDEGATE_WORK_DIRECTORY": str(folder / "work"),
            "TIDEGATE_CREDENTIALS_DIRECTORY": str(folder / "credentials"),
        }
        self.environment = Environment.read(self.variables)
        self.variables |= inherited_variables(CONFIG, self.variables, sys.executable)

    def renew(self, secret: str) -> None:
        (self.folder / "credentials" / SECRET_KEY).write_text(secret)

    def digest(self, secret: str = SECRET) -> str:
        """What PySpark's process comes to, which has the credentials in its own variables by then."""
        asked = last_script.read(str(self.folder / "work"))
        settings = sparkconf.build_spark_conf(CONFIG, self.environment, "another", asked.settings)
        settings = {key: value for key, value in settings.items() if key not in sparkconf.OF_ONE_PROCESS}
        known = {**self.variables, ACCESS_KEY: "access", SECRET_KEY: secret}
        return digest_of(self.folder / "spark", settings, known)

    @property
    def kept(self) -> list[str]:
        return [path.name for path in (self.folder / "work").glob("launch-*")]

    def keep(self, how: str = "works", last: str = FORESEEN) -> None:
        """Have the process before leave a command."""
        (self.folder / "jvm.py").write_text(JVM)
        script = self.folder / "work" / f"launch-{self.digest()}"
        command = f"exec {sys.executable} {self.folder}/jvm.py {self.folder} {how}"
        script.write_text(f'#!/bin/sh\n{command} "$@"\n{last}')
        script.chmod(0o700)

    def begin(self, config: DriverConfig = CONFIG) -> HeadStart | None:
        return jvm_prestart.begin(config, self.environment, "this-process", self.variables)

    def begun(self) -> HeadStart:
        ahead = self.begin()
        assert ahead is not None
        return ahead

    def read(self, name: str) -> str:
        wait_for(name, (self.folder / name).exists, 60, 0.01)
        return (self.folder / name).read_text()

    def runs(self) -> bool:
        """Whether the JVM runs."""
        return _runs(int(self.read("pid")))


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    yield World(tmp_path)
    if (tmp_path / "pid").exists():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_the_jvm_gets_this_processs_settings_and_credentials_and_no_secret_on_its_command_line(world: World) -> None:
    world.keep()
    ahead = world.begun()
    reported, variables = json.loads(world.read("told"))
    settings = sparkconf.build_spark_conf(CONFIG, world.environment, "this-process")
    assert reported == [w for k, v in settings.items() for w in ("--conf", f"{k}={v}")] + ["pyspark-shell"]
    assert settings[sparkconf.PROCESS] == "this-process"
    assert (variables[ACCESS_KEY], variables[SECRET_KEY]) == ("access", SECRET)
    assert variables["TIDEGATE_LINEAGE"] == "3"
    assert SECRET not in Path(f"/proc/{world.read('pid')}/cmdline").read_text()
    door = ahead.await_up(world.digest())
    assert door is not None
    assert (door.port, door.secret) == (4711, GATEWAYS)
    assert GATEWAYS not in repr(door)
    place = Path(variables[jvm_prestart.DOOR_VARIABLE]).parent
    assert place.stat().st_mode & 0o777 == 0o700
    process = ahead.hand_over()
    assert not place.exists()
    ahead.end()
    assert world.runs(), "it is no more this one's to end"
    assert world.kept == [f"launch-{world.digest()}"]
    assert process.stdin is not None
    process.stdin.close()
    process.wait(20)
    assert process.returncode == 0


def test_the_jvm_has_what_the_script_asked_for_in_the_process_before(world: World) -> None:
    last_script.keep(str(world.folder / "work"), Asked({"spark.serializer": "x.Own"}))
    world.keep()
    ahead = world.begun()
    reported, _ = json.loads(world.read("told"))
    assert "spark.serializer=x.Own" in reported
    # One that the script asks for nothing any more is another one.
    wanted = world.digest()
    last_script.keep(str(world.folder / "work"), Asked())
    assert world.digest() != wanted
    assert ahead.await_up(world.digest()) is None
    assert not world.runs()


def test_a_jvm_that_is_up_is_used_however_late_the_script_asks_for_spark(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.keep()
    ahead = world.begun()
    _, variables = json.loads(world.read("told"))
    wait_for("the door", Path(variables[jvm_prestart.DOOR_VARIABLE]).exists, 60, 0.01)
    monkeypatch.setattr(jvm_prestart, "LIMIT_SECONDS", 0.0)
    assert ahead.await_up(world.digest()) is not None
    ahead.end()


def test_no_jvm_is_started_without_a_command_that_worked_here_and_arguments_that_are_foreseen(world: World) -> None:
    assert world.begin() is None
    world.keep(last="")
    assert world.begin() is None
    world.keep()
    rehearsal = DriverConfig(**{**vars(CONFIG), "rehearsal": Rehearsal(1, 60)})
    assert world.begin(rehearsal) is None
    world.renew("another")
    assert world.begin() is None
    world.renew("")
    assert world.begin() is None, "the Secret is not mounted yet"
    world.renew(SECRET)
    world.variables[GATEWAY_PORT] = "1"
    world.keep()
    assert world.begin() is None, "PySpark was told of another JVM"
    assert len(world.kept) == 2
    assert not (world.folder / "pid").exists()


def test_a_jvm_with_other_settings_than_are_wanted_by_then_is_ended_and_its_command_kept(world: World) -> None:
    world.keep()
    ahead = world.begun()
    world.read("pid")
    assert ahead.await_up(world.digest("renewed")) is None
    assert not world.runs()
    assert world.kept == [f"launch-{world.digest()}"]


def test_a_jvm_that_nobody_comes_for_is_ended_and_its_command_kept(world: World) -> None:
    world.keep("hangs")
    ahead = world.begun()
    world.read("pid")
    ahead.end()
    ahead.end()
    assert not world.runs()
    assert world.kept == [f"launch-{world.digest()}"]


@pytest.mark.parametrize("how", ["fails", "hangs"])
def test_a_jvm_that_does_not_come_up_is_given_up_with_its_command(
    world: World, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.keep(how)
    ahead = world.begun()
    world.read("told")
    monkeypatch.setattr(jvm_prestart, "LIMIT_SECONDS", 20.0 if how == "fails" else 0.1)
    assert ahead.await_up(world.digest()) is None
    assert not world.runs()
    assert world.kept == []


def test_a_script_that_cannot_be_started_is_no_reason_not_to_start(world: World) -> None:
    world.keep()
    (world.folder / "work" / world.kept[0]).chmod(0o600)
    assert world.begin() is None
    assert world.kept == []


@pytest.mark.parametrize("how", ["works", "hangs"])
def test_a_jvm_does_not_outlive_a_driver_that_is_killed(world: World, how: str) -> None:
    world.keep(how)
    program = (
        "import os, time\n"
        "from tidegate_spark.jvm import jvm_prestart as head_start; from tidegate_spark.driver import start\n"
        "from tidegate_spark.process.environment import Environment\n"
        "config = start.read_config(os.environ.pop('CONFIG'))\n"
        "ahead = head_start.begin(config, Environment.read(os.environ), 'p', dict(os.environ))\n"
        "print(ahead is not None, flush=True)\n"
        "time.sleep(60)\n"
    )
    sources = str(Path(tidegate_spark.__file__).parents[1])
    # The digest is that of the variables that it has itself.
    world.variables |= {"PYTHONPATH": sources, "LC_CTYPE": "C.UTF-8"}
    world.keep(how)
    environment = {**world.variables, "CONFIG": to_json(CONFIG)}
    with subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True
    ) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "True\n"
        assert world.runs()
        driver.kill()
    wait_for("the JVM's end", lambda: not world.runs(), 60, 0.01)


# --- PySpark's side ---


class Conf:
    """Spark's settings, as PySpark has them before there is a JVM."""

    def __init__(self, world: World) -> None:
        self._settings = sparkconf.build_spark_conf(CONFIG, world.environment, "this-process")

    def getAll(self) -> list[tuple[str, str]]:  # noqa: N802 - Spark's name
        return list(self._settings.items())


class Gateway:
    proc: Any = None


class PySpark:
    """What starts and finds JVMs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, world: World, answers: bool = True) -> None:
        self.answers = answers
        self.attached: list[tuple[str | None, str | None]] = []
        self.started = 0
        for name in list(os.environ):
            monkeypatch.delenv(name)
        for name, value in {**world.variables, ACCESS_KEY: "access", SECRET_KEY: SECRET}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(launching, "launch_gateway", self.launch_gateway)

    def launch_gateway(self, conf: Any = None, popen_kwargs: Any = None) -> Gateway:
        if GATEWAY_PORT not in os.environ:
            self.started += 1
            return Gateway()
        self.attached.append((os.environ[GATEWAY_PORT], os.environ[GATEWAY_SECRET]))
        if not self.answers:
            raise Py4JNetworkError("no answer")
        return Gateway()


def launch(world: World, ahead: HeadStart | None) -> Any:
    conf: Any = Conf(world)
    return launching.launch(conf, str(world.folder / "work"), sparkconf.OF_ONE_PROCESS, ahead)


def test_pyspark_is_told_of_the_jvm_that_was_started_ahead_and_nobody_else_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.keep()
    ahead = world.begun()
    pyspark = PySpark(monkeypatch, world)
    gateway = launch(world, ahead)
    assert (pyspark.attached, pyspark.started) == ([("4711", GATEWAYS)], 0)
    assert gateway.proc.pid == int(world.read("pid"))
    assert gateway.proc.poll() is None
    assert {GATEWAY_PORT, GATEWAY_SECRET}.isdisjoint(os.environ)
    assert world.kept == [f"launch-{world.digest()}"]
    gateway.proc.stdin.close()
    gateway.proc.wait(20)


def test_a_jvm_that_came_up_and_does_not_answer_is_ended_and_another_one_started(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.keep()
    ahead = world.begun()
    pyspark = PySpark(monkeypatch, world, answers=False)
    world.read("pid")
    launch(world, ahead)
    assert (len(pyspark.attached), pyspark.started) == (1, 1)
    assert {GATEWAY_PORT, GATEWAY_SECRET}.isdisjoint(os.environ)
    assert not world.runs()


def test_a_jvm_of_other_credentials_is_ended_before_another_one_is_started(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.keep()
    ahead = world.begun()
    world.read("pid")
    pyspark = PySpark(monkeypatch, world)
    monkeypatch.setenv(SECRET_KEY, "renewed")
    running: list[bool] = []
    original = pyspark.launch_gateway

    def check(*arguments: Any, **named: Any) -> Gateway:
        running.append(world.runs())
        return original(*arguments, **named)

    monkeypatch.setattr(launching, "launch_gateway", check)
    launch(world, ahead)
    assert (pyspark.attached, pyspark.started, running) == ([], 1, [False])


def test_a_jvm_is_on_its_way_before_pyspark_is_imported() -> None:
    code = "import sys, tidegate_spark.driver.start, tidegate_spark.jvm.jvm_prestart; print('pyspark' in sys.modules)"
    sources = str(Path(tidegate_spark.__file__).parents[1])
    reported = subprocess.run(
        [sys.executable, "-S", "-c", code], env={"PYTHONPATH": sources}, capture_output=True, text=True, check=True
    )
    assert reported.stdout == "False\n"
