"""Edits: which need another person, and which checks the made version must pass."""

from __future__ import annotations

import json
from typing import Any

import pytest
from guardian.shortcuts import remove_perm

from journal import errors
from journal.models import LogRecord
from policies.models import Person
from reviews.choices import RequestStatus
from reviews.decisions import returns
from reviews.models import ApprovalRequest, Decision
from tests import factories
from tests.conftest import Gate
from tests.desk.request.test_written_answers import CONFLICT, flag_payments, pay
from tests.factories import decide, propose
from tests.worlds import WORLD

HAS_LOST = "'note' in args && args.note == 'lost' && before.arrived"
ASKED = {"customer": "C-1", "amount": "40.00", "currency": "USD"}


def edit(request: ApprovalRequest, person: Person, **args: Any) -> None:
    decide(request, person, "modify", args={**request.sealed.revision.args, **args})
    request.refresh_from_db()


@pytest.mark.parametrize(
    ("change", "because"),
    [
        ({"amount": "40.01"}, ["it raises the amount"]),
        ({"customer": "C-9"}, ["it changes the customer"]),
        (
            {"customer": "C-9", "amount": "41.00"},
            ["it raises the amount", "it changes the customer"],
        ),
    ],
)
def test_an_edit_that_widens_goes_to_another_person(
    gate: Gate, change: dict[str, str], because: list[str]
) -> None:
    request = propose(gate.agent).request
    edit(request, gate.rita, **change)
    assert (request.status, request.version) == (RequestStatus.PENDING, 2)
    assert request.sealed.edited_by == [gate.rita.public_id]
    assert gate.rita.public_id in request.closed_to
    assert not Decision.objects.get().counts
    record = LogRecord.objects.get(kind="decision.second_person")
    assert json.loads(bytes(record.leaf))["data"] == {"because": because}
    for verdict in ("approve", "reject", "escalate"):
        with pytest.raises(errors.NotPermitted, match="You changed this"):
            decide(request, gate.rita, verdict)
    decide(request, gate.tom)
    request.refresh_from_db()
    assert request.status == RequestStatus.AUTHORIZED


def test_a_return_does_not_let_the_editor_decide_the_edit(gate: Gate) -> None:
    request = propose(gate.agent).request
    edit(request, gate.rita, customer="C-9")
    decide(request, gate.tom, "escalate", reason_code="unsafe")
    returns.return_with_guidance(
        request_id=request.pk, person=gate.sue, guidance="Ask for the photograph."
    )
    request.refresh_from_db()
    assert request.sealed.edited_by == [gate.rita.public_id]
    with pytest.raises(errors.NotPermitted, match="You changed this"):
        decide(request, gate.rita)
    decide(request, gate.tom)
    request.refresh_from_db()
    assert request.status == RequestStatus.AUTHORIZED


def test_the_policy_may_let_the_editor_alone_decide(gate: Gate) -> None:
    document = factories.document_of_tests()
    document["tools"]["pay"]["edit"] = "alone"
    factories.policy(gate.people, document)
    request = propose(gate.agent).request
    edit(request, gate.rita, amount="60.00", customer="C-9")
    assert request.status == RequestStatus.AUTHORIZED
    assert not LogRecord.objects.filter(kind="decision.second_person").exists()


def test_nobody_raises_an_amount_by_two_edits_of_their_own(gate: Gate) -> None:
    request = propose(gate.agent).request
    edit(request, gate.sue, amount="600.00")  # asks two supervisors
    assert request.sealed.edited_by == []
    edit(request, gate.sue, amount="400.00")  # asks one person again
    assert request.status == RequestStatus.PENDING
    assert request.sealed.edited_by == [gate.sue.public_id]
    decide(request, gate.rita)


def test_what_the_agent_proposes_instead_is_open_to_the_editor(gate: Gate) -> None:
    request = propose(gate.agent).request
    edit(request, gate.rita, amount="60.00")
    factories.revise(gate.agent, request.proposal, amount="61.00")
    request.refresh_from_db()
    decide(request, gate.rita)
    request.refresh_from_db()
    assert request.status == RequestStatus.AUTHORIZED


def test_an_escalation_keeps_the_editor_out(gate: Gate) -> None:
    request = propose(gate.agent).request
    edit(request, gate.rita, amount="60.00")
    decide(request, gate.tom, "escalate")
    request.refresh_from_db()
    with pytest.raises(errors.NotPermitted, match="You changed this"):
        decide(request, gate.rita)


def test_an_edit_that_nobody_else_can_decide_is_refused(gate: Gate) -> None:
    request = propose(gate.agent).request
    for person in (gate.tom, gate.sue, gate.sam):
        remove_perm("policies.decide", person, request.queue)
    with pytest.raises(errors.PolicyViolation, match="because it raises the amount"):
        edit(request, gate.rita, amount="60.00")
    request.refresh_from_db()
    assert (request.status, request.version) == (RequestStatus.PENDING, 1)


def test_an_edit_needs_the_written_answer_of_what_it_makes(gate: Gate) -> None:
    document = CONFLICT | {"when": HAS_LOST}
    flag_payments(gate, conflict=document)
    request = pay(gate, arrived=True)
    with pytest.raises(errors.AttentionCheckFailed) as refused:
        edit(request, gate.rita, note="lost")
    (needed,) = refused.value.errors
    assert needed["path"] == "args"
    assert needed["message"].startswith(CONFLICT["text"])
    request.refresh_from_db()
    assert (request.status, request.version) == (RequestStatus.PENDING, 1)
    edit(request, gate.rita, note="found")
    assert request.status == RequestStatus.AUTHORIZED


def test_an_edit_that_removes_the_finding_needs_no_answer(gate: Gate) -> None:
    document = CONFLICT | {"when": HAS_LOST}
    flag_payments(gate, conflict=document)
    request = pay(gate, args={**ASKED, "note": "lost"}, arrived=True)
    with pytest.raises(errors.AttentionCheckFailed):
        decide(request, gate.rita)
    edit(request, gate.rita, note="found")
    assert request.status == RequestStatus.AUTHORIZED


def test_an_edit_needs_the_reason_of_what_it_makes(gate: Gate) -> None:
    document = factories.document_of_tests()
    rule = {"id": "pay.odd", "text": "A reason.", "tools": ["pay"]}
    rule |= {"when": "args.amount == 1300", "then": {"reason": True}}  # type: ignore[dict-item]
    document["rules"].append(rule)
    factories.policy(gate.people, document)
    request = propose(gate.agent).request
    args = {**ASKED, "amount": "13.00"}
    with pytest.raises(errors.ReasonMissing):
        decide(request, gate.rita, "modify", args=args, reason_code="")
    decide(request, gate.rita, "modify", args=args, reason_code="wrong_amount")
    request.refresh_from_db()
    assert request.status == RequestStatus.AUTHORIZED


@pytest.fixture(autouse=True)
def _facts() -> Any:
    yield
    WORLD.pop("facts", None)
