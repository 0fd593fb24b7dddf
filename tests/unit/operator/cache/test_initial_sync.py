"""When everything that was there at the start is known. Pure."""

import dataclasses

from tidegate.cache.index import Index
from tidegate_testing.observations import app_with, driver_of

ORDERS = app_with(resourceVersion="7")


def is_complete(index: Index) -> bool:
    assert index.initial_sync.complete.is_set() is (index.initial_sync.missing == "")
    return index.initial_sync.complete.is_set()


def test_nothing_is_known_at_first_but_what_is_missing() -> None:
    index = Index()
    assert (is_complete(index), index.initial_sync.missing) == (False, "pods are not listed yet")
    index.replace_pods([], "", "99")
    assert (is_complete(index), index.initial_sync.missing) == (False, "applications are not listed yet")
    index.keep_apps([], "", "9")
    assert is_complete(index)


def test_those_that_cannot_be_read_are_known_too() -> None:
    """However hopeless one is, its list is whole, and the others do not wait for it."""
    index = Index()
    index.replace_pods([], "", "99")
    index.put_app({"metadata": {"uid": "u-2"}, "spec": 7})
    index.keep_apps(["u-2"], "", "9")
    assert is_complete(index)


def test_each_namespace_that_is_served_has_lists_of_its_own() -> None:
    index = Index(("shop", "sales"))
    index.replace_pods([driver_of(ORDERS)], "shop", "99")
    index.put_app(ORDERS)
    index.keep_apps(["u-1"], "shop", "9")
    assert not is_complete(index)
    index.keep_apps([], "sales", "9")
    assert not is_complete(index)
    index.replace_pods([], "sales", "99")
    assert is_complete(index)


def test_later_lists_change_nothing_of_it() -> None:
    index = Index()
    index.replace_pods([driver_of(ORDERS)], "", "99")
    index.keep_apps([], "", "9")
    index.keep_apps(["u-1", "u-9"], "", "20")
    index.replace_pods([dataclasses.replace(driver_of(ORDERS), uid="pod-2")], "", "99")
    assert is_complete(index)
