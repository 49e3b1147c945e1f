from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

import jwt
import pytest

from agents.adapters.authzen import binding_tokens
from journal import clock
from reviews import redaction
from reviews.grants import tokens
from reviews.models import Proposal
from tests import factories
from tests.agents.adapters.authzen.conftest import (
    EnforcementPoint,
    connect,
    deployment,
    payment,
)
from tests.conftest import Gate

URN = "urn:openid:authzen:access-request:error:"


def claims_of(token: str) -> dict[str, Any]:
    return dict(jwt.decode(token, options={"verify_signature": False}))


def refused(
    pep: EnforcementPoint, sent: dict[str, Any], status: int, kind: str
) -> list[str]:
    """The paths that the refusal names; nothing was proposed."""
    answer = pep.submit(sent)
    assert (answer.status_code, answer.json()["type"]) == (status, f"{URN}{kind}")
    assert not Proposal.objects.exists()
    return [fault["path"] for fault in answer.json()["errors"]]


def test_a_token_binds_what_was_denied_and_to_whom(
    pep: EnforcementPoint, settings: Any
) -> None:
    said = pep.evaluate(deployment(thread="t-1"))["context"]
    token = said["access_request"]["binding_token"]
    header = jwt.get_unverified_header(token)
    assert header["typ"] == binding_tokens.BINDING_TYPE
    assert header["kid"] in {key["kid"] for key in tokens.build_jwk_set()["keys"]}
    claims = claims_of(token)
    here = settings.COUNTERSEAL.base_url
    assert (claims["iss"], claims["aud"]) == (here, here)
    assert claims["jti"] == claims["evaluation_id"] == said["evaluation_id"]
    assert claims["denial_expires_at"] == said["access_request"]["expires_at"]
    assert claims["client_id"] == "riley"
    assert claims["binding_context_members"] == ["thread"]
    assert claims["exp"] - claims["iat"] == 600


CHANGES: dict[str, dict[str, Any]] = {
    "another amount": {"action": {"properties": {"amount": "4000.00"}}},
    "another tool": {"resource": {"id": "pay_opaque"}},
    "another person": {"subject": {"id": "mallory@example.com"}},
    "another kind of person": {"subject": {"type": "customer"}},
    "a property of the person": {"subject": {"properties": {"vip": True}}},
    "another run": {"context": {"thread": "t-2"}},
    "another state": {"context": {"preconditions": {"row_version": 2}}},
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_denial_of_something_else_is_no_denial_of_this(
    pep: EnforcementPoint, what: str
) -> None:
    body = payment(thread="t-1", preconditions={"row_version": 1})
    sent = pep.submission(body)
    for name, change in CHANGES[what].items():
        for member, value in change.items():
            if member == "properties":
                before = sent[name].get(member, {})
                value = {**before, **value}
            sent[name][member] = value
    refused(pep, sent, 400, "invalid_denial_binding")


def test_context_that_binds_is_neither_added_nor_left_out(
    pep: EnforcementPoint,
) -> None:
    sent = pep.submission(payment(thread="t-1"))
    del sent["context"]["thread"]
    assert refused(pep, sent, 400, "invalid_denial_binding") == ["context"]
    sent = pep.submission(payment())
    sent["context"]["thread"] = "t-1"
    assert refused(pep, sent, 400, "invalid_denial_binding") == ["context"]


def test_other_context_may_be_added(pep: EnforcementPoint) -> None:
    sent = pep.submission(payment(thread="t-1", time="2026-04-30T20:15:00Z"))
    sent["context"] = {"thread": "t-1", "business_justification": "A cracked screen."}
    assert pep.submit(sent).status_code == 202
    assert Proposal.objects.get().current.rationale == "A cracked screen."


def test_the_denial_is_echoed_unchanged(pep: EnforcementPoint) -> None:
    sent = pep.submission(payment())
    for member, value in (
        ("expires_at", "2099-01-01T00:00:00.000Z"),
        ("evaluation_id", "e-00000000000000000000"),
        ("binding_token", sent["denial"]["binding_token"][:-4] + "AAAA"),
        ("binding_token", "no token"),
        ("binding_token", None),
    ):
        changed = copy.deepcopy(sent)
        changed["denial"][member] = value
        paths = refused(pep, changed, 400, "invalid_denial_binding")
        assert paths == [f"denial.{member}"]


def test_a_token_of_ours_that_is_no_binding_token_binds_nothing(
    pep: EnforcementPoint, settings: Any
) -> None:
    sent = pep.submission(payment())
    claims = claims_of(sent["denial"]["binding_token"])
    there = {**claims, "aud": "https://other.example"}
    for token in (
        tokens.sign_claims(claims),
        tokens.sign_claims(claims, typ="counterseal-approval+jwt"),
        tokens.sign_claims(there, typ=binding_tokens.BINDING_TYPE),
    ):
        sent["denial"]["binding_token"] = token
        paths = refused(pep, sent, 400, "invalid_denial_binding")
        assert paths == ["denial.binding_token"]


def test_an_agent_cannot_use_the_denial_of_another(
    pep: EnforcementPoint, gate: Gate
) -> None:
    sent = pep.submission(payment())
    robin = connect(factories.agent(gate.owen, "robin"), gate)
    paths = refused(robin, sent, 400, "invalid_denial_binding")
    assert paths == ["denial.binding_token"]


def test_a_denial_expires(
    pep: EnforcementPoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own time is moved, not the clock."""
    monkeypatch.setattr(binding_tokens, "LIFETIME", timedelta(seconds=-1))
    refused(pep, pep.submission(payment()), 410, "expired_denial")


def test_a_repeated_submission_finds_its_task_after_that(
    pep: EnforcementPoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = pep.submission(payment())
    first = pep.submit(sent, "arq")
    later = clock.now() + timedelta(hours=1)
    monkeypatch.setattr(clock, "now", lambda: later)
    again = pep.submit(sent, "arq")
    assert again.json()["task"]["id"] == first.json()["task"]["id"]
    assert again["Idempotent-Replayed"] == "true"


def test_an_evaluation_id_can_name_a_run() -> None:
    found = {binding_tokens.create_evaluation_id() for _ in range(200)}
    assert len(found) == 200
    assert not any(redaction.list_kinds(name) for name in found)
