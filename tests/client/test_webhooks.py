"""T20: what standard-webhooks' own library tests of a verifier, of our letters with
that library as the verifier and of the client's `verify`; replays, clocks, rotation.

The behaviours are those of standard-webhooks, libraries/python/tests/test_webhooks.py.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from counterseal_client import NotVerified, webhooks
from reviews.outbound.webhooks import build_signature_headers

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # their test vector
OTHER = "whsec_" + base64.b64encode(b"another secret of ours!!").decode()
MESSAGE = "msg_p5jXN8AQM9LWM0D4loKWxJek"
BODY = json.dumps(
    {
        "type": "proposal.settled",
        "timestamp": "2026-11-21T08:00:00Z",
        "data": {
            "outcome": "o-1",
            "proposal": "p-1",
            "thread": "t-1",
            "status": "rejected",
        },
    }
).encode()
Headers = dict[str, str]


def sent(
    *, message: str = MESSAGE, secrets: tuple[str, ...] = (SECRET,), body: bytes = BODY
) -> Headers:
    """The headers as the gate sends them, now."""
    return build_signature_headers(body, message, secrets)


def sent_at(at: datetime, *, secret: str = SECRET) -> Headers:
    """The headers of another time, by the reference library."""
    signed = Webhook(secret).sign(MESSAGE, at, BODY.decode())
    stamp = str(int(at.timestamp()))
    return {
        "webhook-id": MESSAGE,
        "webhook-timestamp": stamp,
        "webhook-signature": signed,
    }


def by_reference(headers: Headers, body: bytes, secret: str) -> Any:
    return Webhook(secret).verify(body, headers)


def by_client(headers: Headers, body: bytes, secret: str) -> Any:
    return webhooks.verify(headers, body, secret).data


Case = tuple[Headers, bytes, str]
Verifier = Callable[[Headers, bytes, str], Any]
both = pytest.mark.parametrize("verify", [by_reference, by_client])
REFUSALS = (WebhookVerificationError, NotVerified, ValueError)


def without(name: str) -> Headers:
    return {key: value for key, value in sent().items() if key != name}


def ago(**span: float) -> Headers:
    return sent_at(datetime.now(UTC) - timedelta(**span))


def with_signature(change: Callable[[str], str]) -> Headers:
    headers = sent()
    return {**headers, "webhook-signature": change(headers["webhook-signature"])}


FORGED = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def refused() -> dict[str, Case]:
    """Made anew, for they hold the time."""
    return {
        "missing id": (without("webhook-id"), BODY, SECRET),
        "missing timestamp": (without("webhook-timestamp"), BODY, SECRET),
        "missing signature": (without("webhook-signature"), BODY, SECRET),
        "invalid timestamp": ({**sent(), "webhook-timestamp": "hello"}, BODY, SECRET),
        "invalid signature": (with_signature(lambda _: FORGED), BODY, SECRET),
        "partial signature": (with_signature(lambda one: one[:8]), BODY, SECRET),
        "empty signature": (with_signature(lambda _: "v1,"), BODY, SECRET),
        "old timestamp": (ago(minutes=5, seconds=2), BODY, SECRET),
        "new timestamp": (ago(minutes=-5, seconds=-2), BODY, SECRET),
        "another body": (sent(), BODY.replace(b"p-1", b"p-2"), SECRET),
        "another id": ({**sent(), "webhook-id": "msg_other"}, BODY, SECRET),
        "wrong secret": (sent(), BODY, OTHER),
        "unknown version": (
            with_signature(lambda s: s.replace("v1,", "v1a,")),
            BODY,
            SECRET,
        ),
    }


def taken() -> dict[str, Case]:
    """The same of what is right."""
    return {
        "valid": (sent(), BODY, SECRET),
        "several signatures": (
            with_signature(lambda one: f"{FORGED} v2,{FORGED[3:]} {one} {FORGED}"),
            BODY,
            SECRET,
        ),
        "secret without prefix": (sent(), BODY, SECRET.removeprefix("whsec_")),
        "dots in the id": (sent(message="o-1.2.3"), BODY, SECRET),
        "both of two secrets, the new": (sent(secrets=(OTHER, SECRET)), BODY, OTHER),
        "both of two secrets, the old": (sent(secrets=(OTHER, SECRET)), BODY, SECRET),
        "five minutes behind": (ago(minutes=4, seconds=50), BODY, SECRET),
        "five minutes ahead": (ago(minutes=-4, seconds=-50), BODY, SECRET),
        "names of any case": (
            {name.title(): value for name, value in sent().items()},
            BODY,
            SECRET,
        ),
    }


@both
@pytest.mark.parametrize("case", refused())
def test_what_is_not_right_is_refused(verify: Verifier, case: str) -> None:
    with pytest.raises(REFUSALS):
        verify(*refused()[case])


@both
@pytest.mark.parametrize("case", taken())
def test_what_is_right_is_taken(verify: Verifier, case: str) -> None:
    assert verify(*taken()[case]) in (json.loads(BODY), json.loads(BODY)["data"])


def test_signing_is_the_references_own() -> None:
    """Their vector: key, id, time and body give this signature, and no other."""
    body = b'{"test": 2432232314}'
    at = datetime.fromtimestamp(1614265330, UTC)
    expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert Webhook(SECRET).sign(MESSAGE, at, body.decode()) == expected
    headers = {
        "webhook-id": MESSAGE,
        "webhook-timestamp": "1614265330",
        "webhook-signature": expected,
    }
    with pytest.raises(NotVerified, match="not an event"):  # its signature is valid
        webhooks.verify(headers, body, SECRET, now=1614265330)


def test_the_bytes_are_checked_and_not_what_they_mean() -> None:
    """The same JSON with other spaces is another letter."""
    again = json.dumps(json.loads(BODY), separators=(",", ":")).encode()
    assert json.loads(again) == json.loads(BODY)
    with pytest.raises(NotVerified):
        webhooks.verify(sent(), again, SECRET)


def test_a_replay_is_known_by_its_id_and_refused_by_its_age() -> None:
    headers = sent()
    first, second = (webhooks.verify(headers, BODY, SECRET) for _ in range(2))
    assert first.id == second.id == MESSAGE  # inside five minutes the id tells
    later = float(headers["webhook-timestamp"]) + webhooks.TOLERANCE
    webhooks.verify(headers, BODY, SECRET, now=later)
    with pytest.raises(NotVerified, match="too old"):
        webhooks.verify(headers, BODY, SECRET, now=later + 1)


@pytest.mark.parametrize("minutes", [-5, -4, -1, 0, 1, 4, 5])
def test_clocks_may_be_five_minutes_apart(minutes: int) -> None:
    headers = sent()
    theirs = float(headers["webhook-timestamp"]) + 60 * minutes
    assert webhooks.verify(headers, BODY, SECRET, now=theirs).proposal == "p-1"


@pytest.mark.parametrize(
    "secret", ["", "whsec_", "whsec_=", "whsec_äöü", "not base64!", "whsec_====="]
)
def test_a_secret_that_is_none_lets_nothing_through(secret: str) -> None:
    with pytest.raises(NotVerified):
        webhooks.verify(sent(), BODY, secret)


@pytest.mark.proof
def test_t20(record_proof: Callable[[str, str], None]) -> None:
    """Every case by both verifiers; a flipped bit anywhere is refused."""
    for verify in (by_reference, by_client):
        for case in refused().values():
            with pytest.raises(REFUSALS):
                verify(*case)
        for good in taken().values():
            verify(*good)
    headers, flips = sent(), 0
    for place in range(len(BODY)):
        changed = BODY[:place] + bytes([BODY[place] ^ 1]) + BODY[place + 1 :]
        for verify in (by_reference, by_client):
            with pytest.raises(REFUSALS):
                verify(headers, changed, SECRET)
            flips += 1
    cases = 2 * (len(refused()) + len(taken()))
    record_proof(
        "T20",
        f"letters to agents: {cases} of {cases} cases of standard-webhooks' own tests "
        "and of rotation hold, by the reference library and by the client; "
        f"{flips} of {flips} flipped bits refused (at most {300 / flips:.0f} % "
        "taken); replays and clocks 5 min apart "
        "as promised",
    )
