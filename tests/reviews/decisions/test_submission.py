"""A proof of identity is for one request, version, hash and verdict, for five minutes
and for one decision; whatever is not exactly that is none (I16)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from journal import clock, errors
from policies.models import Person
from reviews.choices import Verdict
from reviews.decisions import decide, submission
from reviews.decisions.submission import PROOF_LIFETIME, StepUpProof
from reviews.models import ApprovalRequest, Decision
from reviews.people import tokens
from tests import factories, pages
from tests.conftest import Gate
from tests.factories import PASSWORD, propose, said
from tests.markup import read_page
from tests.policies.authenticator import enrol
from tests.policies.security_key import give_key, offer_passkeys
from tests.security.world import BACKEND


@pytest.fixture
def asked(gate: Gate) -> ApprovalRequest:
    """Two supervisors, each with a proof."""
    return propose(gate.agent, amount="899.00").request


def sit(person: Person) -> Client:
    client = Client()
    client.force_login(person, BACKEND)
    return client


def send(client: Client, asked: ApprovalRequest, **fields: Any) -> Any:
    asked.refresh_from_db()
    body = {
        "seen": pages.token(asked, "sue"),
        "verdict": "approve",
        "version": asked.version,
        "action_hash": asked.action_hash,
        **fields,
    }
    return client.post(f"/requests/{asked.pk}/decide/", body)


def refuse(proof: StepUpProof | None, verdict: Any) -> None:
    with pytest.raises(errors.ReauthenticationRequired):
        decide.decide_request(replace(verdict, step_up=proof))
    assert not Decision.objects.exists()


@pytest.mark.parametrize(
    "other",
    [
        {"request": "r-another"},
        {"version": 2},
        {"action_hash": "sha256:" + "0" * 64},
        {"verdict": Verdict.MODIFY},
        {"person": "u-another"},
    ],
)
def test_a_proof_for_anything_else_is_none(
    gate: Gate, asked: ApprovalRequest, other: dict[str, Any]
) -> None:
    verdict = said(asked, gate.sue)
    bound = replace(verdict.bound, **other)
    refuse(StepUpProof("password", clock.now(), bound.digest), verdict)


@pytest.mark.parametrize(
    "age", [PROOF_LIFETIME + timedelta(seconds=1), timedelta(days=-1)]
)
def test_a_proof_that_is_old_or_of_tomorrow_is_none(
    gate: Gate, asked: ApprovalRequest, age: timedelta
) -> None:
    verdict = said(asked, gate.sue)
    refuse(StepUpProof("password", clock.now() - age, verdict.bound.digest), verdict)


def test_without_a_proof_nothing_is_decided(gate: Gate, asked: ApprovalRequest) -> None:
    refuse(None, said(asked, gate.sue))
    factories.decide(asked, gate.sue)
    assert Decision.objects.get().authority["step_up"] == "password"


def test_whoever_has_no_password_cannot_prove_anything(
    gate: Gate, asked: ApprovalRequest
) -> None:
    verdict = said(asked, gate.sue)
    proof = StepUpProof("password", clock.now(), verdict.bound.digest)
    gate.sue.set_unusable_password()
    gate.sue.save()
    refuse(proof, verdict)
    client = sit(gate.sue)
    for password in ("", PASSWORD, "!", gate.sue.password):
        assert send(client, asked, password=password).status_code == 401


def test_a_token_never_suffices(gate: Gate, asked: ApprovalRequest) -> None:
    text = tokens.create_token(person=gate.sue, name="mine")
    body = {
        "verdict": "approve",
        "version": 1,
        "action_hash": asked.action_hash,
        "password": PASSWORD,
    }
    answer = Client().post(
        f"/api/v1/requests/{asked.pk}/decide",
        body,
        content_type="application/json",
        headers={"Authorization": f"Bearer {text}"},
    )
    assert (answer.status_code, answer.json()["code"]) == (401, "reauth")
    assert not Decision.objects.exists()


def test_it_is_kept_while_something_else_is_wrong_and_used_once(
    gate: Gate, asked: ApprovalRequest
) -> None:
    client = sit(gate.sue)
    other = {"reason_code": "other"}
    refused = send(client, asked, password=PASSWORD, **other)
    assert refused.status_code == 422
    source = refused.content.decode()
    assert 'data-testid="proved"' in source
    assert 'name="password"' not in source
    assert PASSWORD not in source
    assert PASSWORD not in str(dict(client.session))
    assert send(client, asked).status_code == 303
    assert "step_up" not in client.session
    assert Decision.objects.get().authority["step_up"] == "password"


def test_what_is_kept_is_for_this_verdict_and_version_alone(
    gate: Gate, asked: ApprovalRequest
) -> None:
    client = sit(gate.sue)
    send(client, asked, password=PASSWORD, reason_code="other")
    another = propose(gate.agent, amount="901.00", customer="C-9").request
    assert send(client, another).status_code == 401
    modify = {"verdict": "modify", "arg.amount": "1.00"}
    assert send(client, asked, **modify).status_code in {401, 422}
    factories.revise(gate.agent, asked.proposal, amount="950.00")
    assert send(client, asked).status_code == 401
    assert not Decision.objects.exists()


def test_what_is_kept_lapses(gate: Gate, asked: ApprovalRequest) -> None:
    client = sit(gate.sue)
    send(client, asked, password=PASSWORD, reason_code="other")
    session = client.session
    old = datetime.fromisoformat(session["step_up"]["at"]) - PROOF_LIFETIME
    session["step_up"] = {**session["step_up"], "at": old.isoformat()}
    session.save()
    assert send(client, asked).status_code == 401


@pytest.mark.parametrize("rubbish", [1, "x", {}, {"at": "never"}, None])
def test_what_cannot_be_read_is_no_proof(rubbish: Any, gate: Gate, asked) -> None:
    bound = said(asked, gate.sue).bound.digest
    session: Any = {"step_up": rubbish}
    assert submission.find_stored_proof(session, bound, clock.now()) is None


def test_an_edit_that_comes_to_need_a_proof_asks_for_one(gate: Gate) -> None:
    document = factories.document_of_tests()
    rule = {
        "id": "pay.odd",
        "text": "Payments of exactly 13.00 need a proof.",
        "tools": ["pay"],
        "when": "args.amount == 1300",
        "then": {"step_up": True},
    }
    document["rules"].append(rule)
    factories.policy(gate.people, document)
    request = propose(gate.agent).request
    assert not request.sealed.step_up
    args = {**request.sealed.revision.args, "amount": "13.00"}
    verdict = said(request, gate.rita, "modify", args=args, step_up=None)
    with pytest.raises(errors.ReauthenticationRequired):
        decide.decide_request(verdict)
    request.refresh_from_db()
    assert request.version == 1
    decide.decide_request(factories.proved(verdict))
    request.refresh_from_db()
    assert request.version == 2


def test_the_policy_says_what_a_proof_may_be(gate: Gate, settings: Any) -> None:
    document = factories.document_of_tests()
    document["desk"]["step_up"] = {"critical": ["passkey"], "high": ["totp", "passkey"]}
    offer_passkeys(settings)
    for who in (gate.rita, gate.tom, gate.sue, gate.sam):
        give_key(who)
    factories.policy(gate.people, document)
    asked = propose(gate.agent, amount="899.00").request
    verdict, sue = said(asked, gate.sue), sit(gate.sue)
    refuse(StepUpProof("password", clock.now(), verdict.bound.digest), verdict)
    refused = send(sue, asked, password=PASSWORD)
    assert refused.status_code == 401
    needed = "The policy takes a code of an authenticator app or a passkey at this risk"
    assert needed in read_page(refused)
    app, _ = enrol(gate.sue)
    assert send(sue, asked, one_time_code=app.show()).status_code in {200, 302, 303}
    assert asked.decisions.get().authority["step_up"] == "totp"
