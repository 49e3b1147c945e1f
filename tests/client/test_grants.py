"""Verifying a grant without the gate: what is taken, and that nothing else is."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from counterseal_client.grants import TYPE, InvalidGrant, VerifiedGrant, verify
from journal import canonical
from reviews.governance.ruling import ProposedAction
from reviews.grants import tokens

AUDIENCE = "https://pay.example"
HERE: dict[str, Any] = {"audience": AUDIENCE, "tool": "pay"}
ARGS = {"amount": "1.00", "to": "Zoë \U0001f600", "n": 1e21, "deep": [{"b": 1, "a": 0}]}
HELD = {"row_version": 7}
NOON = 1_800_000_000


def hashed(args: Any = None, held: Any = None) -> str:
    """By the gate's own code."""
    given = ARGS if args is None else args
    action = ProposedAction(
        "p-1", "pay", given, "riley", "t-1", HELD if held is None else held
    )
    return canonical.digest(action.canonical(3))


CLAIMS: dict[str, Any] = {
    "iss": "https://gate.example",
    "aud": AUDIENCE,
    "jti": "g-1",
    "iat": NOON,
    "nbf": NOON,
    "exp": NOON + 900,
    "proposal": "p-1",
    "revision": 2,
    "action_hash": hashed(),
    "tool": "pay",
    "tool_version": 3,
    "policy_version": 5,
    "agent": "riley",
    "thread": "t-1",
    "target": {"customer": "C-1"},
    "idempotency_key": "cs-1",
    "execution": "x-1",
    "fence": 1,
}


def token(**claims: Any) -> str:
    """Signed by the gate's key; None takes a claim away."""
    said = {**CLAIMS, **claims}
    return tokens.sign_claims({name: v for name, v in said.items() if v is not None})


def check(value: str, *, at: float = NOON + 60, **more: Any) -> VerifiedGrant:
    given: dict[str, Any] = {"args": ARGS, "preconditions": HELD, **more}
    jwks = given.pop("jwks", tokens.build_jwk_set())
    place = {name: given.pop(name, usual) for name, usual in HERE.items()}
    now = datetime.fromtimestamp(at, UTC)
    return verify(value, jwks, **place, now=now, **given)


def refusal(value: str, **more: Any) -> str:
    with pytest.raises(InvalidGrant) as found:
        check(value, **more)
    return found.value.code


def test_a_grant_says_what_it_permits() -> None:
    grant = check(token(), issuer="https://gate.example")
    assert (grant.id, grant.proposal, grant.revision) == ("g-1", "p-1", 2)
    assert (grant.tool, grant.tool_version, grant.policy_version) == ("pay", 3, 5)
    assert (grant.agent, grant.thread, grant.fence) == ("riley", "t-1", 1)
    assert grant.target == {"customer": "C-1"}
    assert (grant.execution, grant.idempotency_key) == ("x-1", "cs-1")
    assert grant.expires_at == datetime.fromtimestamp(NOON + 900, UTC)
    assert grant.claims == CLAIMS


@pytest.mark.parametrize("leeway", [0, 30, 90])
def test_it_is_to_be_remembered_for_as_long_as_it_is_taken(leeway: int) -> None:
    last = check(token(), at=NOON, leeway=leeway).remember_until
    assert refusal(token(), at=last.timestamp(), leeway=leeway) == "expired"
    check(token(), at=last.timestamp() - 1, leeway=leeway)


@pytest.mark.parametrize(
    ("claims", "more", "code"),
    [
        ({"aud": "https://other.example"}, {}, "wrong_audience"),
        ({"aud": [AUDIENCE]}, {}, "malformed"),
        ({}, {"audience": "https://pay.example.evil"}, "wrong_audience"),
        ({}, {"issuer": "https://other.example"}, "wrong_issuer"),
        ({}, {"tool": "refund"}, "other_tool"),
        ({}, {"args": {**ARGS, "amount": "1.01"}}, "other_action"),
        ({}, {"args": {**ARGS, "more": None}}, "other_action"),
        ({}, {"args": {}}, "other_action"),
        ({}, {"args": {"amount": object()}}, "other_action"),
        ({}, {"args": {"amount": "\ud800"}}, "other_action"),
        ({}, {"preconditions": {"row_version": 8}}, "other_action"),
        ({}, {"preconditions": None}, "other_action"),
        ({"tool_version": 4}, {}, "other_action"),
        ({"tool": "refund"}, {}, "other_tool"),
        ({"tool": "refund"}, {"tool": "refund"}, "other_action"),
        ({"agent": "robin"}, {}, "other_action"),
        ({"thread": "t-2"}, {}, "other_action"),
        ({"fence": None}, {}, "not_redeemed"),
        ({"fence": 0}, {}, "not_redeemed"),
        ({"fence": "1"}, {}, "malformed"),
        ({"fence": True}, {}, "malformed"),
        ({"exp": "9999999999"}, {}, "malformed"),
        ({"exp": None}, {}, "malformed"),
        ({"nbf": None}, {}, "malformed"),
        ({"jti": None}, {}, "malformed"),
        ({"jti": 7}, {}, "malformed"),
        ({"target": "C-1"}, {}, "malformed"),
    ],
)
def test_what_is_of_something_else_is_refused(
    claims: dict[str, Any], more: dict[str, Any], code: str
) -> None:
    assert refusal(token(**claims), **more) == code


@pytest.mark.parametrize(
    ("seconds", "code"),
    [(-31, "not_yet"), (-30, ""), (0, ""), (899, ""), (929, ""), (930, "expired")],
)
def test_it_holds_in_its_window_and_half_a_minute_around(
    seconds: int, code: str
) -> None:
    if code:
        assert refusal(token(), at=NOON + seconds) == code
    else:
        check(token(), at=NOON + seconds)


def test_without_leeway_a_second_counts() -> None:
    assert refusal(token(), at=NOON + 900, leeway=0) == "expired"
    assert refusal(token(), at=NOON - 1, leeway=0) == "not_yet"


def test_the_clock_of_this_machine_counts_when_no_time_is_given() -> None:
    with pytest.raises(InvalidGrant, match="expired"):
        verify(token(exp=1, nbf=0), tokens.build_jwk_set(), **HERE)
    forever = token(nbf=0, exp=2**33)
    assert verify(forever, tokens.build_jwk_set(), **HERE).id == "g-1"


def test_the_arguments_are_checked_only_where_they_are_given() -> None:
    assert check(token(), args=None).action_hash == hashed()
    assert check(token(fence=None), redeemed=False).fence == 0


def encoded(value: Any) -> str:
    raw = json.dumps(value, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def public() -> bytes:
    """The public half: what an attacker may take for a shared secret."""
    return base64.urlsafe_b64decode(tokens.build_jwk_set()["keys"][0]["x"] + "=")


HEADER = {"typ": TYPE, "kid": tokens.build_jwk_set()["keys"][0]["kid"]}
STRANGER = Ed25519PrivateKey.from_private_bytes(bytes([7]) * 32)
FORGED: dict[str, tuple[str, Callable[[], str]]] = {
    "a stranger's signature": (
        "forged",
        lambda: jwt.encode(CLAIMS, STRANGER, "EdDSA", HEADER),
    ),
    "a stranger's key": (
        "unknown_key",
        lambda: jwt.encode(CLAIMS, STRANGER, "EdDSA", {**HEADER, "kid": "other"}),
    ),
    "no key's name": (
        "unknown_key",
        lambda: jwt.encode(CLAIMS, STRANGER, "EdDSA", {"typ": TYPE}),
    ),
    "alg none": (
        "malformed",
        lambda: f"{encoded({**HEADER, 'alg': 'none'})}.{encoded(CLAIMS)}.",
    ),
    "alg none with our signature": (
        "malformed",
        lambda: ".".join([encoded({**HEADER, "alg": "none"}), *token().split(".")[1:]]),
    ),
    "alg HS256 with our public key": (
        "malformed",
        lambda: jwt.encode(CLAIMS, public(), "HS256", HEADER),
    ),
    "no signature": ("forged", lambda: token().rpartition(".")[0] + "."),
    "another kind of token": (
        "malformed",
        lambda: jwt.encode(CLAIMS, STRANGER, "EdDSA", {"kid": HEADER["kid"]}),
    ),
    "other claims under our signature": (
        "forged",
        lambda: ".".join(
            [
                token().split(".")[0],
                encoded({**CLAIMS, "agent": "robin"}),
                token().split(".")[2],
            ]
        ),
    ),
    "an unprotected part": (
        "malformed",
        lambda: (
            encoded({**HEADER, "alg": "EdDSA", "b64": False, "crit": ["b64"]})
            + ".."
            + token().split(".")[2]
        ),
    ),
    "nothing": ("malformed", lambda: ""),
    "dots": ("malformed", lambda: "..."),
}


@pytest.mark.parametrize("how", FORGED)
def test_what_the_gate_did_not_sign_is_refused(how: str) -> None:
    code, made = FORGED[how]
    assert refusal(made()) == code


def test_keys_of_other_kinds_under_the_same_name_open_nothing() -> None:
    """A key set that somebody added a shared secret to (alg confusion)."""
    secret = base64.urlsafe_b64encode(public()).decode().rstrip("=")
    mixed = {"kty": "oct", "k": secret, "kid": HEADER["kid"], "alg": "HS256"}
    jwks = {"keys": [mixed, *tokens.build_jwk_set()["keys"]]}
    forged = jwt.encode(CLAIMS, public(), "HS256", HEADER)
    assert refusal(forged, jwks=jwks) == "malformed"
    assert check(token(), jwks=jwks).id == "g-1"
    assert refusal(token(), jwks={"keys": [mixed]}) == "unknown_key"
    assert refusal(token(), jwks={"keys": []}) == "unknown_key"


def test_no_changed_character_is_overlooked() -> None:
    whole = token()
    for at, mark in enumerate(whole):
        other = "A" if mark != "A" else "B"
        with pytest.raises(InvalidGrant):
            check(whole[:at] + other + whole[at + 1 :])
