"""Whatever is changed in a signed request or in its answer, it is refused; and nothing is taken twice."""

import random
from dataclasses import fields, replace

import pytest

from tidegate_spark.contract.agent_protocol import (
    CHALLENGE_SECONDS,
    GENERATOR,
    PRIME,
    Launch,
    SignedRequest,
    order_key,
    prove,
    public_number,
    read_header,
)
from tidegate_spark.driver.agent.agent_gate import MOST_NONCES, Gate
from tidegate_testing.agent_keys import (
    INSPECTION_TOKEN,
    LAUNCH,
    OPERATORS,
    PRIVATE,
    Clock,
    drawing,
    gate_with,
    head_of,
    key_of,
    request_to,
)

PARTS = [field.name for field in fields(SignedRequest)]
SEEDS = range(20)


def judged(gate: Gate, request: SignedRequest, key: bytes) -> str:
    """Return why the gate refuses a request, empty if it does not."""
    return refusal(gate, request.method, request.target, request.header(key))


def refusal(gate: Gate, method: str, target: str, header: str) -> str:
    found = gate.judge(head_of(method, target, header))
    return found.message if found is not None else ""


def with_one_byte_changed(text: str, draw: random.Random) -> str:
    """Return a text with one character replaced by another one, dropped or doubled."""
    at = draw.randrange(len(text))
    other = draw.choice([word for word in "abcdefABCDEF0123456789-_/" if word != text[at]])
    return draw.choice([text[:at] + other + text[at + 1 :], text[:at] + text[at + 1 :], text[:at] + other + text[at:]])


def test_the_group_is_that_of_the_rfc_and_has_no_small_ones() -> None:
    half = (PRIME - 1) // 2
    assert PRIME.bit_length() == 2048
    assert PRIME % 2**64 == 2**64 - 1
    assert PRIME >> 1984 == 2**64 - 1
    # Of two primes p and (p - 1) / 2: what is tested is what a composite number would not pass but by chance.
    assert all(pow(base, PRIME - 1, PRIME) == 1 == pow(base, half - 1, half) for base in (2, 3, 5, 7, 11))
    assert pow(GENERATOR, half, PRIME) == 1


def test_what_the_operator_signs_is_let_in_and_its_answer_is_believed() -> None:
    gate = gate_with(Clock())
    key, request = key_of(gate), request_to(gate, "n1")
    assert judged(gate, request, key) == ""
    read = read_header(request.header(key), request.method, request.target)
    assert read == (request, request.signature(key))
    challenge = gate.challenge()
    signature = gate.answer_signature(request, 202, b"{}", challenge)
    assert signature == request.answer_signature(key, 202, b"{}", challenge)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_request_of_which_any_byte_is_another_is_refused(part: str, seed: int) -> None:
    draw, gate = random.Random(seed), gate_with(Clock())
    key, request = key_of(gate), request_to(gate, "nonce-of-the-request", target="/v1/executors")
    signature = request.signature(key)
    changed = replace(request, **{part: with_one_byte_changed(getattr(request, part), draw)})
    header = request.header(key).replace(getattr(request, part), getattr(changed, part), 1)
    if part in ("method", "target"):
        header = request.header(key)
    assert signature in header
    assert refusal(gate, changed.method or "X", changed.target or "/", header) != ""
    assert judged(gate, request, key) == "", "the true one is let in all the same"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_signature_of_which_any_byte_is_another_is_refused(seed: int) -> None:
    gate = gate_with(Clock())
    key, request = key_of(gate), request_to(gate, "n1")
    signature = request.signature(key)
    other = with_one_byte_changed(signature, random.Random(seed))
    assert refusal(gate, "POST", request.target, request.header(key).replace(signature, other)) != ""


@pytest.mark.parametrize("part", ["status", "body", "challenge", "nonce"])
def test_an_answer_of_which_anything_is_another_is_not_believed(part: str) -> None:
    gate = gate_with(Clock())
    key, request = key_of(gate), request_to(gate, "n1")
    given = {"status": 200, "body": b"{}", "challenge": "c"}
    signature = request.answer_signature(key, **given)  # type: ignore[arg-type] # as named
    asked = replace(request, nonce="n2") if part == "nonce" else request
    other = {"status": 202, "body": b"{ }", "challenge": "d"}
    said = given | {part: other[part]} if part in other else given
    assert asked.answer_signature(key, **said) != signature  # type: ignore[arg-type] # as named


def test_a_request_is_let_in_once() -> None:
    gate = gate_with(Clock())
    key, request = key_of(gate), request_to(gate, "n1")
    assert [judged(gate, request, key) for _ in range(2)] == ["", "the request was there before"]
    # Nor is the same nonce with a newer challenge another request.
    assert judged(gate, request_to(gate, "n1"), key) == "the request was there before"


def test_requests_that_cross_each_other_are_let_in_in_any_order() -> None:
    clock = Clock()
    gate = gate_with(clock)
    key, first = key_of(gate), request_to(gate, "n1")
    clock.now += 5
    second = request_to(gate, "n2")
    assert [judged(gate, each, key) for each in (second, first)] == ["", ""]


@pytest.mark.parametrize(("seconds", "let_in"), [(CHALLENGE_SECONDS - 1, True), (CHALLENGE_SECONDS + 1, False)])
def test_a_request_is_let_in_within_the_time_of_its_challenge(seconds: float, let_in: bool) -> None:
    clock = Clock()
    gate = gate_with(clock)
    key, request = key_of(gate), request_to(gate, "n1")
    clock.now += seconds
    assert (judged(gate, request, key) == "") is let_in


def test_what_is_remembered_is_bounded_and_nothing_is_taken_twice_for_that() -> None:
    clock = Clock()
    gate = gate_with(clock)
    key = key_of(gate)
    first = request_to(gate, "n0")
    requests = [first, *(request_to(gate, f"n{number}") for number in range(1, MOST_NONCES))]
    assert {judged(gate, each, key) for each in requests} == {""}
    assert "more than" in judged(gate, request_to(gate, "another"), key)
    assert judged(gate, first, key) == "the request was there before"
    clock.now += CHALLENGE_SECONDS + 1
    assert judged(gate, request_to(gate, "later"), key) == ""
    assert judged(gate, first, key) == "the challenge is not of this process, or too old"


def test_what_was_signed_for_another_process_is_refused() -> None:
    clock = Clock()
    gate, before = gate_with(clock), gate_with(clock, seed=1)
    request = request_to(before, "n1")
    assert judged(before, request, key_of(before)) == ""
    assert judged(gate, request, key_of(before)) != ""
    # Not even with this one's key: the challenge is another process's.
    assert judged(gate, request, key_of(gate)) == "the challenge is not of this process, or too old"


@pytest.mark.parametrize("other", [{"namespace": "team"}, {"app": "other"}, {"uid": "u-2"}, {"epoch": 4}])
def test_each_launch_has_a_key_of_its_own(other: dict[str, str | int]) -> None:
    gate = gate_with(Clock())
    launch = replace(LAUNCH, **other)  # type: ignore[arg-type] # as named
    assert key_of(gate, launch=launch) != key_of(gate)
    assert judged(gate, request_to(gate, "n1"), key_of(gate, launch=launch)) != ""


def test_who_has_read_the_secret_has_the_operators_public_number_and_cannot_sign() -> None:
    gate = gate_with(Clock())
    mine = drawing(7)(32)
    number = gate.greet(INSPECTION_TOKEN, "nonce").number
    guesses = [
        order_key(mine, number, LAUNCH, operators=OPERATORS, drivers=number),
        order_key(mine, OPERATORS, LAUNCH, operators=OPERATORS, drivers=number),
        INSPECTION_TOKEN.encode(),
        OPERATORS.encode(),
    ]
    assert "" not in [judged(gate, request_to(gate, "n1"), key) for key in guesses]


def test_who_stands_between_the_two_with_the_secret_has_a_key_with_the_operator_and_none_with_the_driver() -> None:
    gate, between = gate_with(Clock()), drawing(7)(32)
    shown = public_number(between)
    operators_key = order_key(PRIVATE, shown, LAUNCH, operators=OPERATORS, drivers=shown)
    assert operators_key == order_key(between, OPERATORS, LAUNCH, operators=OPERATORS, drivers=shown)
    assert judged(gate, request_to(gate, "n1"), operators_key) != ""


@pytest.mark.parametrize(
    "number", ["", "0", "1", "-2", "no number", "f" * 513, format(PRIME - 1, "x"), format(PRIME, "x")]
)
def test_a_number_with_which_anybody_would_have_the_key_makes_none(number: str) -> None:
    with pytest.raises(ValueError, match=r"number|invalid literal"):
        order_key(PRIVATE, number, LAUNCH, operators=OPERATORS, drivers=number)
    gate = gate_with(Clock(), operators=number)
    assert [judged(gate, request_to(gate, "n1"), key) for key in (b"", key_of(gate))] == [
        "the signature is not that of this process's operator"
    ] * 2


def test_a_greeting_proves_the_token_for_this_launch_and_this_question() -> None:
    gate = gate_with(Clock())
    said = gate.greet(INSPECTION_TOKEN, "n1")
    assert said.proof == prove(INSPECTION_TOKEN, LAUNCH, said.number, said.challenge, "n1")
    others = [
        prove("another", LAUNCH, said.number, said.challenge, "n1"),
        prove(INSPECTION_TOKEN, Launch("shop", "orders", "u-1", 4), said.number, said.challenge, "n1"),
        prove(INSPECTION_TOKEN, LAUNCH, said.number, said.challenge, "n2"),
        prove(INSPECTION_TOKEN, LAUNCH, OPERATORS, said.challenge, "n1"),
    ]
    assert said.proof not in others


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Tidegate",
        "Tidegate a b c",
        "Tidegate a b c d e",
        "Tidegate  a b c",
        "Tidegate a b c \xe9",
        "Bearer a b c d",
    ],
)
def test_a_header_of_another_form_is_that_of_nobody(header: str) -> None:
    assert read_header(header, "GET", "/") is None
    assert refusal(gate_with(Clock()), "GET", "/", header) == "the request is not signed"
