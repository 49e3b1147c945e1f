"""The two clients agree on what is signed, hashed and named: each case goes through
both, and through the gate's own code where it makes one."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from counterseal_client import webhooks
from counterseal_client.grants import InvalidGrant
from counterseal_client.signatures import build_call_key
from journal import canonical
from reviews.grants import tokens
from tests.client import test_grants, test_webhooks
from tests.client.typescript.node import Probe, Refused

NOON = test_grants.NOON
OTHER_KEY = {"kty": "OKP", "crv": "Ed25519", "kid": "other", "x": "AAAA"}


def verify_here(token: str, given: dict[str, Any], now: float) -> str:
    """What the Python client says."""
    try:
        test_grants.check(token, at=now, **given)
    except InvalidGrant as no:
        return no.code
    return "valid"


def verify_there(
    probe: Probe, token: str, given: dict[str, Any], now: float
) -> str | dict[str, Any]:
    """What the TypeScript client says."""
    expected = {"args": test_grants.ARGS, "preconditions": test_grants.HELD}
    expected |= test_grants.HERE | given
    jwks = expected.pop("jwks", tokens.build_jwk_set())
    try:
        grant: dict[str, Any] = probe.ask(
            "verifyGrant", token=token, jwks=jwks, expected=expected, now=now
        )
    except Refused as no:
        refused = no
    else:
        return grant
    code = str(refused.code)
    assert refused.name == "InvalidGrant"
    assert refused.answer == {"status": "failed", "error": {"code": f"grant_{code}"}}
    return code


def build_cases() -> list[tuple[dict[str, Any], dict[str, Any], float]]:
    """Changed claims, what the service expects, and the time."""
    noon = NOON + 60
    claims: list[dict[str, Any]] = [
        {"aud": "https://other.example"},
        {"aud": [test_grants.AUDIENCE]},
        {"tool_version": 4},
        {"tool": "refund"},
        {"agent": "robin"},
        {"thread": "t-2"},
        {"fence": None},
        {"fence": 0},
        {"fence": "1"},
        {"fence": True},
        {"exp": "9999999999"},
        {"jti": None},
        {"target": "C-1"},
    ]
    expected: list[dict[str, Any]] = [
        {"issuer": "https://other.example"},
        {"tool": "refund"},
        {"args": {**test_grants.ARGS, "amount": "1.01"}},
        {"args": {}},
        {"preconditions": {}},
        {"jwks": {"keys": []}},
        {"jwks": {"keys": [OTHER_KEY]}},
    ]
    times = [NOON - 31, NOON - 30, NOON + 929, NOON + 930]
    return [
        *((one, {}, noon) for one in claims),
        *(({}, one, noon) for one in expected),
        *(({}, {}, time) for time in times),
    ]


@pytest.mark.parametrize(("claims", "given", "now"), build_cases())
def test_both_clients_verify_alike(
    probe: Probe, claims: dict[str, Any], given: dict[str, Any], now: float
) -> None:
    token = test_grants.token(**claims)
    here = verify_here(token, dict(given), now)
    there = verify_there(probe, token, given, now)
    assert (there if isinstance(there, str) else "valid") == here


def test_a_valid_grant_says_what_it_permits(probe: Probe) -> None:
    grant = verify_there(probe, test_grants.token(), {}, NOON + 60)
    assert isinstance(grant, dict)
    assert (grant["id"], grant["claims"]) == ("g-1", test_grants.CLAIMS)
    assert grant["rememberUntil"] == "2027-01-15T08:15:30.000Z"


def test_a_token_that_was_touched_is_refused(probe: Probe) -> None:
    head, body, signature = test_grants.token().split(".")
    none = base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').decode().rstrip("=")
    other = base64.urlsafe_b64encode(bytes(64)).decode().rstrip("=")
    touched = {
        f"{none}.{body}.{signature}": "malformed",
        f"{head}.{body}.{other}": "forged",
        f"{head}.{body[:-4]}AAAA.{signature}": "forged",
        f"{head}.{body}": "forged",
        f"{head}.{body}.{signature}.x": "malformed",
        f"{head}.{body}.!": "malformed",
        "": "malformed",
    }
    for token, code in touched.items():
        assert verify_there(probe, token, {}, NOON + 60) == code, token


def test_both_clients_take_the_same_webhooks(probe: Probe) -> None:
    body, secret = test_webhooks.BODY, test_webhooks.SECRET
    good = test_webhooks.sent()
    two = test_webhooks.sent(secrets=(test_webhooks.OTHER, secret))
    changed = body.replace(b"rejected", b"executed")
    cases: list[tuple[dict[str, str], bytes, str]] = [
        (good, body, secret),
        (two, body, secret),
        ({name.upper(): value for name, value in good.items()}, body, secret),
        (good, changed, secret),
        (good, body, test_webhooks.OTHER),
        (good, body, "whsec_"),
        (good, body, "whsec_?"),
        ({**good, "webhook-timestamp": "1700000000"}, body, secret),
        ({**good, "webhook-timestamp": "later"}, body, secret),
        ({**good, "webhook-signature": "v2,AAAA v1,? v1"}, body, secret),
        ({"webhook-id": "m"}, body, secret),
        (test_webhooks.sent(body=b"[]"), b"[]", secret),
    ]
    for headers, content, key in cases:
        encoded = base64.b64encode(content).decode()
        given = {"headers": headers, "body": encoded, "secret": key}
        try:
            here: Any = webhooks.verify(headers, content, key).data
        except webhooks.NotVerified:
            with pytest.raises(Refused) as caught:
                probe.ask("verifyWebhook", **given)
            assert caught.value.name == "NotVerified"
            continue
        event = probe.ask("verifyWebhook", **given)
        assert (event["id"], event["data"]) == (test_webhooks.MESSAGE, here)


def test_both_clients_name_a_call_alike(probe: Probe) -> None:
    for thread, call_id in [("t-1", "c"), ('"', "\\\x7f\x00"), ("Zoë", "\U0001f600")]:
        there = probe.ask("buildKey", thread=thread, callId=call_id)
        assert there == build_call_key(thread, call_id)


def test_the_canonical_form_is_that_of_the_gate_and_of_the_rfc(
    probe: Probe, shared: Callable[[str], Path]
) -> None:
    cases = json.loads(shared("vectors/rfc8785_jcs.json").read_text())
    for case in cases:
        made = probe.ask("canonicalize", text=case["input"])
        assert made == case["canonical"], case["case"]
    value = {"\U0001f600": 1e21, "\ufb33": -0.0, **test_grants.ARGS}
    made = probe.ask("canonicalize", text=json.dumps(value))
    assert made == canonical.encode(value).decode()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[89.00, 1e2, 0.1, -0.0, 9007199254740991]", [89, 100, 0.1, 0, 2**53 - 1]),
        ("12345678901234567890", "12345678901234567890"),
        ("0.30000000000000000001", "0.30000000000000000001"),
        ('{"amount": 1e400}', {"amount": "1e400"}),
    ],
)
def test_a_number_that_a_float_cannot_hold_keeps_its_digits(
    probe: Probe, text: str, value: Any
) -> None:
    assert probe.ask("decode", text=text) == value
