"""RabbitMQ and Erlang from Debian's packages: unpacked into the cache once, and not installed. Runs apt, writes files.

Installed, the package would start a broker on this machine, as a user of its own and on every address.
"""

import fcntl
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from devcluster import paths

_ERLANG = (
    *("base", "crypto", "asn1", "public-key", "ssl", "mnesia", "snmp", "os-mon", "runtime-tools", "inets", "ftp"),
    *("tftp", "eldap", "parsetools", "syntax-tools", "tools", "xmerl"),
)
PACKAGES = ("rabbitmq-server", *(f"erlang-{name}" for name in _ERLANG))
_BUILT_FOR = "/usr/lib/erlang"
_STARTERS = ("erl", "start", "start_erl")


def folder() -> Path:
    """Return where they belong."""
    return paths.cache() / "rabbitmq"


def ensure() -> Path:
    """Fetch and unpack them unless they are there; return the folder that stands for ``/``.

    Raises:
        RuntimeError: apt failed, or there is no apt.
    """
    target = folder()
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            _fetch(target)
    return target


def _fetch(target: Path) -> None:
    print("rabbitmq: unpacking Debian's packages", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        # apt gives what it downloads to a user of its own, who must be able to come here.
        Path(work).chmod(0o755)
        _run(["apt-get", "-qq", "download", *PACKAGES], Path(work))
        root = Path(work) / "root"
        for package in sorted(Path(work).glob("*.deb")):
            _run(["dpkg-deb", "--extract", package, root], Path(work))
        relocate(root, target)
        shutil.move(root, target)


def relocate(root: Path, target: Path) -> None:
    """Have the programs that start Erlang find it in ``target``, where ``root`` is going to be."""
    for name in _STARTERS:
        starter = root / _BUILT_FOR[1:] / "bin" / name
        if starter.exists():
            starter.write_text(starter.read_text().replace(_BUILT_FOR, f"{target}{_BUILT_FOR}"))


def _run(command: list[str | Path], cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command[:3]))} … failed: {done.stderr[-800:]}")


def erlang_path(root: Path) -> str:
    """Return the folders with Erlang's programs, as PATH has them."""
    (runtime,) = (root / _BUILT_FOR[1:]).glob("erts-*/bin")
    return f"{root}{_BUILT_FOR}/bin:{runtime}"


def server(root: Path) -> Path:
    """Return the program that starts the broker."""
    (found,) = root.glob("usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server")
    return found
