"""When everything that was there at the start is known. Pure."""

import dataclasses
from collections.abc import Callable

import msgspec
import pytest

from tidegate.api.streaming_app import StreamingApp
from tidegate.cache.index import Index
from tidegate_testing.observations import app_with, driver_of
from tidegate_testing.values import body

ORDERS = app_with(resourceVersion="7")
BILLS = app_with(resourceVersion="8", name="bills", uid="u-2")
UIDS = ("u-1", "u-2")


def is_complete(index: Index) -> bool:
    assert index.first_lists.complete.is_set() is (index.first_lists.missing == "")
    return index.first_lists.complete.is_set()


def listed(namespaces: tuple[str, ...] = ("",)) -> Index:
    """Return an index that has had both lists, and none of the two applications that they name."""
    index = Index(namespaces)
    index.replace_pods([driver_of(ORDERS)], namespaces[0], "99")
    index.keep_apps(UIDS, namespaces[0], "9")
    return index


def test_nothing_is_known_at_first_but_what_is_missing() -> None:
    index = Index()
    assert (is_complete(index), index.first_lists.missing) == (False, "pods are not listed yet")
    index.replace_pods([], "", "99")
    assert (is_complete(index), index.first_lists.missing) == (False, "applications are not listed yet")
    index.keep_apps([], "", "9")
    assert is_complete(index)


def test_a_list_of_names_is_not_enough_the_applications_have_to_come() -> None:
    index = listed()
    assert index.first_lists.missing == "2 of the listed applications are not read yet"
    index.put_app(ORDERS)
    assert (is_complete(index), index.first_lists.missing) == (
        False,
        "1 of the listed applications are not read yet",
    )
    index.put_app(BILLS)
    assert is_complete(index)


def test_those_that_came_before_the_list_need_not_come_again() -> None:
    index = Index()
    index.put_app(ORDERS)
    index.put_app(BILLS)
    index.replace_pods([], "", "99")
    index.keep_apps(UIDS, "", "9")
    assert is_complete(index)


def unreadable() -> dict[str, object]:
    broken = body({"application.runtime": "Unheard"})
    broken["metadata"] |= {"name": "bills", "uid": "u-2"}
    return broken


def replaced() -> StreamingApp:
    return msgspec.structs.replace(BILLS, metadata=msgspec.structs.replace(BILLS.metadata, uid="u-3"))


# The ways in which the second application is settled.
SETTLED: dict[str, Callable[[Index], object]] = {
    "one that cannot be read": lambda index: index.put_app(unreadable()),
    "one that is gone": lambda index: index.remove_app(("shop", "bills"), "u-2"),
    "one that was deleted and created again": lambda index: (
        index.put_app(replaced()),
        index.remove_app(("shop", "bills"), "u-2"),
    ),
    "one that a later list does not name": lambda index: index.keep_apps(UIDS[:1], "", "20"),
}


@pytest.mark.parametrize("how", SETTLED)
def test_the_wait_for_an_application_is_over_with(how: str) -> None:
    index = listed()
    index.put_app(ORDERS)
    SETTLED[how](index)
    assert is_complete(index)


def test_not_even_for_one_that_nothing_can_be_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    index = listed()
    index.put_app(ORDERS)
    monkeypatch.setattr("tidegate.cache.index.decode_app", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        index.put_app(unreadable())
    assert is_complete(index)


def test_each_namespace_that_is_served_has_lists_of_its_own() -> None:
    index = listed(("shop", "sales"))
    index.put_app(ORDERS)
    index.put_app(BILLS)
    assert not is_complete(index)
    index.keep_apps([], "sales", "9")
    assert not is_complete(index)
    index.replace_pods([], "sales", "99")
    assert is_complete(index)


def test_later_lists_change_nothing_of_it() -> None:
    index = listed()
    index.put_app(ORDERS)
    index.put_app(BILLS)
    index.keep_apps([*UIDS, "u-9"], "", "20")
    index.replace_pods([dataclasses.replace(driver_of(ORDERS), uid="pod-2")], "", "99")
    assert is_complete(index)
