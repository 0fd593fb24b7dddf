"""A prefix allows what is below it, segment by segment, however an address is written."""

from urllib.parse import quote, unquote

from hypothesis import example, given
from hypothesis import strategies as st

from tidegate_spark.control.worker.model_places import LONGEST, PlaceError, is_within, parts_of

plain = st.text("ab-._~ é=+@", min_size=1, max_size=6).filter(lambda word: word not in (".", ".."))
folders = st.lists(plain, max_size=3).map(tuple)
schemes = st.sampled_from(["s3://models", "s3a://models", "file://"])
hostile = st.sampled_from(
    [
        "",
        ".",
        "..",
        "%2e%2e",
        "%2E.",
        ".%2e",
        "%252e%252e",
        "%2f",
        "..%2fx",
        "%5c",
        "%00",
        "a\\..",
        "\t",
        "\x7f",
        "\u2028",
    ]
)
addresses = st.one_of(
    st.builds(lambda scheme, path: "/".join([scheme, *path]), schemes, st.lists(plain | hostile, max_size=5)),
    st.text("s3fileamod:/.%2e\\ab", max_size=30),
    st.text(max_size=30),
)


def allowed(uri: str, *prefixes: str) -> bool:
    try:
        return is_within(uri, prefixes)
    except PlaceError:
        return False


def address(scheme: str, *segments: str) -> str:
    return "/".join([scheme, *segments])


@given(schemes, folders, folders, plain)
def test_what_is_below_a_prefix_is_allowed(
    scheme: str, prefix: tuple[str, ...], more: tuple[str, ...], name: str
) -> None:
    if scheme == "file://" and not prefix:
        prefix = ("opt",)
    assert is_within(address(scheme, *prefix, *more, name), [address(scheme, *prefix, "")])


@given(folders, plain, plain, plain)
def test_a_name_that_begins_like_the_prefixs_last_folder_is_not_below_it(
    folder: tuple[str, ...], last: str, more: str, name: str
) -> None:
    prefix = address("s3://b", *folder, last, "")
    assert not allowed(address("s3://b", *folder, last + more, name), prefix)
    assert not allowed(address("s3://b", *folder, last + more), prefix)
    assert not allowed(address("s3://b" + more, *folder, last, name), prefix)


@given(folders, st.lists(plain | hostile, max_size=3), hostile, st.lists(plain | hostile, max_size=2), plain)
def test_no_detour_is_allowed_wherever_it_stands_in_the_address(
    folder: tuple[str, ...], before: list[str], detour: str, after: list[str], name: str
) -> None:
    uri = address("s3://b", *folder, *before, detour, *after, name)
    assert not allowed(uri, "s3://b/", address("s3://b", *folder, ""))


@given(addresses, st.lists(addresses, max_size=3))
@example("s3://b/" + "%25" * 600 + "2e", ["s3://b/"])
@example("s3://b/" + "a" * LONGEST, ["s3://b/"])
@example("s3://b/a/", ["s3://b/"])
@example("file:///etc", ["file:///"])
@example("s3://b", ["s3://b/"])
def test_whatever_is_allowed_is_below_a_prefix_for_every_reader(uri: str, prefixes: list[str]) -> None:
    """One that takes escapes out once, twice or never, and one that takes backslashes for slashes."""
    if not allowed(uri, *prefixes):
        return
    readings = {uri.replace("s3a://", "s3://", 1)}
    for _ in range(3):
        readings |= {unquote(reading) for reading in readings}
        readings |= {reading.replace("\\", "/") for reading in readings}
    for reading in readings:
        scheme, _, rest = reading.partition("://")
        walked: list[str] = []
        for segment in rest.split("/"):
            assert segment not in (".", "..")
            walked.append(segment)
        below = [prefix.replace("s3a://", "s3://", 1).partition("://") for prefix in prefixes]
        assert any(
            scheme == kind
            and [unquote(unquote(unquote(it))) for it in folder.split("/")[:-1]]
            == [unquote(unquote(unquote(it))) for it in walked[: folder.count("/")]]
            for kind, _, folder in below
        )


@given(plain)
def test_an_address_that_is_escaped_once_names_another_object(name: str) -> None:
    """Keys are taken as they are written: an escape is no other spelling of the same."""
    assert parts_of(address("s3://b", name))[-1] == name
    escaped = quote(name)
    if escaped != name:
        assert parts_of(address("s3://b", escaped))[-1] == escaped
