"""Which programs are built when, and that they have what their configuration names. Nothing is compiled."""

import re
from pathlib import Path

import pytest

from devcluster import node, tools


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the programs that were built, in a cache that has none yet."""
    names: list[str] = []

    def build(each: tools.Program, target: Path) -> None:
        names.append(each.name)
        (target / each.name).touch()

    monkeypatch.setenv("TIDEGATE_CACHE", str(tmp_path))
    monkeypatch.setattr(tools, "_build", build)
    monkeypatch.setattr(tools, "_collect_kwok_stages", lambda target: (target / tools.KWOK_STAGES).touch())
    return names


def test_the_simulator_of_nodes_is_not_built_with_the_others(built: list[str]) -> None:
    tools.ensure()
    assert built == [each.name for each in tools.PROGRAMS]
    assert tools.KWOK.name not in built


def test_the_simulator_of_nodes_is_built_alone_and_once_when_it_is_asked_for(built: list[str]) -> None:
    assert tools.program("kwok").exists()
    assert tools.program(tools.KWOK_STAGES).exists()
    assert built == ["kwok"]


def test_what_enforces_network_policies_is_built_alone_and_once_when_it_is_asked_for(built: list[str]) -> None:
    assert tools.program(tools.KUBE_ROUTER.name).exists()
    assert tools.program(tools.KUBE_ROUTER.name).exists()
    assert built == ["kube-router"]


@pytest.mark.parametrize("name", ["kubectl", "etcd", "kubelet", "helm"])
def test_a_program_that_is_asked_for_by_name_is_built(built: list[str], name: str) -> None:
    assert tools.program(name).exists()
    assert tools.program(name).exists()
    assert built == [each.name for each in tools.PROGRAMS]


def test_coredns_has_the_plugins_that_its_configuration_names_and_no_others(tmp_path: Path) -> None:
    named = set(re.findall(r"^  ([a-z]+)", node.corefile(tmp_path), re.MULTILINE))
    source = (tools.SOURCES / "coredns" / "main.go").read_text()
    assert named == set(re.findall(r"coredns/plugin/([a-z]+)\"", source))
