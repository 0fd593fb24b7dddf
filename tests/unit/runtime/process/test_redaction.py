"""Secrets do not get out: whichever way they are spelt, and wherever a stream happens to be cut."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_spark.contract.control_protocol import (
    ChannelReport,
    ControlReport,
    MessageReport,
    MessageState,
    QueryAcknowledgement,
)
from tidegate_spark.contract.protocol import (
    SECRET_VARIABLES,
    AgentReport,
    DriverState,
    Fault,
    Notice,
    Termination,
    to_json,
)
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.secret_shapes import REDACTED
from tidegate_spark.process.redaction import Secrets, Stream, clean_report, secret_values
from tidegate_spark.process.termination import termination_text

PASSWORD = "correct horse"
KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("DB", "correct horse", True),  # named by the operator
        ("PIN", "1234567", True),  # likewise
        ("ORDERS_PASSWORD", "correct horse", True),
        ("STRIPE_API_KEY", "sk_live_12345", True),
        ("AWS_SECRET_ACCESS_KEY", "abcdefgh", True),
        ("GITHUB_TOKEN", "short", False),
        ("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE", False),
        ("TIDEGATE_AGENT_TOKEN_FILE", "/var/run/tidegate/agent/token", False),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "/var/run/secrets/token", False),
        ("GREETING", "good morning", False),
        ("PWD", "/var/lib/tidegate", False),  # a shell that starts the driver leaves it
        ("DB_PWD", "correct horse", True),
    ],
)
def test_variables_from_secrets_are_secret_and_those_whose_name_says_so(name: str, value: str, secret: bool) -> None:
    assert secret_values({name: value, SECRET_VARIABLES: "DB,PIN"}) == ((value,) if secret else ())


@pytest.mark.parametrize(
    "text",
    [
        f"login with {PASSWORD} failed",
        f"postgresql://u:{PASSWORD.replace(' ', '%20')}@db",
        json.dumps({"password": PASSWORD}),
        f"{PASSWORD}{PASSWORD}",
    ],
)
def test_a_value_is_left_out_in_each_of_its_spellings(text: str) -> None:
    cleaned = Secrets([PASSWORD]).clean(text)
    assert "horse" not in cleaned
    assert REDACTED in cleaned


def test_a_key_of_several_lines_is_left_out_as_a_whole_in_json_and_line_by_line() -> None:
    secrets = Secrets([KEY])
    for text in (KEY, json.dumps(KEY), f"{KEY!r}", "line 2 is AQEFAASCBKcwggSjAgEAAoIB"):
        assert "AQEFAASC" not in secrets.clean(text)


def test_of_two_values_of_which_one_starts_with_the_other_nothing_stays() -> None:
    assert Secrets(["correct", "correct horse"]).clean("correct horse, correct") == f"{REDACTED}, {REDACTED}"


def test_a_value_with_bytes_that_are_no_text_is_left_out_of_a_text_and_of_an_address() -> None:
    value = b"correct \xff horse".decode("utf-8", "surrogateescape")
    found = Secrets([value])
    assert found.clean(f"login with {value} failed") == f"login with {REDACTED} failed"
    assert found.clean_bytes(b"db://u:correct%20%FF%20horse") == f"db://u:{REDACTED}".encode()


def test_very_short_values_are_not_looked_for() -> None:
    assert Secrets(["", "yes", "a b"]).clean("yes, a b") == "yes, a b"


@given(
    st.lists(st.sampled_from(["correct horse", "correct", " horse", "c", "or", "\n", "x"]), max_size=12),
    st.lists(st.integers(1, 9), min_size=1, max_size=40),
)
def test_however_a_stream_is_cut_it_shows_what_the_whole_text_would(words: list[str], cuts: list[int]) -> None:
    secrets, text = Secrets(["correct horse", "staple battery"]), "".join(words).encode()
    stream, shown, rest = Stream(secrets), b"", text
    while rest:
        length = cuts[len(rest) % len(cuts)]
        shown, rest = shown + stream.feed(rest[:length]), rest[length:]
    assert shown + stream.flush() == secrets.clean_bytes(text)


def test_a_stream_holds_back_nothing_but_a_possible_beginning() -> None:
    stream = Stream(Secrets([PASSWORD]))
    assert stream.feed(b"progress: 10 %\r") == b"progress: 10 %\r"
    assert stream.feed(b"it is corr") == b"it is "
    assert stream.feed(b"upt\n") == b"corrupt\n"


@pytest.mark.parametrize("quote", ['"', "'"])
def test_a_stream_does_not_cut_a_password_from_the_quote_that_ends_it(quote: str) -> None:
    """It ends in a space, so that the quote is the first of the next word, which may be the beginning of a secret."""
    stream = Stream(Secrets())
    pieces = (f"sasl: password={quote}two words {quote};password".encode(), b"=1\n")
    shown = b"".join(map(stream.feed, pieces)).decode()
    assert shown == f"sasl: password={quote}{REDACTED}{quote};password={REDACTED}\n"


def test_a_secret_that_is_learned_later_is_left_out_from_then_on() -> None:
    secrets = Secrets()
    stream = Stream(secrets)
    secrets.add(PASSWORD)
    assert stream.feed(f"{PASSWORD}\n".encode()) == f"{REDACTED}\n".encode()


def test_what_the_operator_is_told_has_no_secret_in_it() -> None:
    secrets = Secrets([PASSWORD])
    report = AgentReport(
        app="a",
        uid="u",
        epoch=1,
        state=DriverState.WAITING,
        fault=Fault(Reason.BROKER_UNAVAILABLE, f"no answer to {PASSWORD}"),
        notices=(Notice(1, "CheckpointRedirected", f"s3a://u:{PASSWORD}@b"),),
        control=ControlReport(
            messages=(
                MessageReport(
                    "m",
                    MessageState.FAILED,
                    message=f"no {PASSWORD}",
                    queries={"main": QueryAcknowledgement(1, errors=(f"ValueError: {PASSWORD}",))},
                ),
            ),
            channel=ChannelReport("Kafka", message=f"Invalid value {PASSWORD} for sasl.jaas.config"),
        ),
    )
    assert PASSWORD not in to_json(clean_report(report, secrets))
    ended = Termination(Reason.APPLICATION_FAILED, f"ValueError: {PASSWORD}", 1)
    assert PASSWORD not in termination_text(ended, secrets)


def test_secrets_are_not_shown_by_printing_what_holds_them() -> None:
    assert PASSWORD not in repr(Secrets([PASSWORD]))
