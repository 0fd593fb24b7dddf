"""What proves identity in a cluster is for its owner only, whatever the umask says."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster import controlplane, private
from devcluster.cluster import State
from devcluster.controlplane import Addresses
from devcluster.site import S3Keys


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_state_with_the_s3_keys_is_for_its_owner_only_and_reads_as_it_was_written(tmp_path: Path) -> None:
    state = State(1, 2, 3, S3Keys("access", "secret"))
    state.write(tmp_path)
    assert [(file.name, oct(mode(file))) for file in tmp_path.iterdir()] == [("state.json", "0o600")]
    assert State.read(tmp_path) == state


def test_keys_tokens_and_kubeconfigs_are_for_their_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "dev"
    private.make_folder(folder)
    addresses = Addresses("10.0.0.1", 6443, 2379, 2380, reachable_api_port=1)
    controlplane.write_identities(folder, addresses, controlplane.users())
    secrets = [*folder.glob("*kubeconfig"), folder / "tokens.csv", *(folder / "pki").glob("*.key")]
    assert {oct(mode(file)) for file in secrets} == {"0o600"}
    assert {oct(mode(place)) for place in (folder, folder / "pki")} == {"0o700"}


def test_a_file_that_others_could_read_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_text("old")
    private.write(file, "new")
    assert (file.read_text(), oct(mode(file))) == ("new", "0o600")


def test_a_folder_that_others_could_enter_is_shut(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    private.make_folder(tmp_path)
    assert oct(mode(tmp_path)) == "0o700"
