"""What somebody reads who decides too late."""

from __future__ import annotations

import pytest

from journal import errors
from reviews.decisions.submission import PageEvidence
from reviews.models import ApprovalRequest, Decision
from tests import factories
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews import states

pytestmark = pytest.mark.django_db


@pytest.fixture
def request_(gate: Gate) -> ApprovalRequest:
    return propose(gate.agent).request


def told(request: ApprovalRequest, person, verdict: str = "approve", **fields) -> str:
    with pytest.raises(errors.DomainError) as caught:
        decide(request, person, verdict, **fields)
    return caught.value.detail


def test_who_was_first_and_by_how_much(gate: Gate, request_) -> None:
    decide(request_, gate.tom, "reject")
    said = told(request_, gate.rita)
    assert said.startswith("Tom Example rejected this just before you.")
    assert said.endswith("Your approval has no effect.")


def test_ones_own_verdict_is_called_so(gate: Gate, request_) -> None:
    decide(request_, gate.rita)
    assert told(request_, gate.rita, "reject").startswith("You approved this already.")


def test_nobody_is_named_while_it_can_be_recalled(gate: Gate) -> None:
    request = states.recallable(gate)
    said = told(request, gate.tom)
    assert said.startswith("Someone else approved this")
    assert "Rita" not in said


def test_an_expiry_names_its_time_and_the_delay(gate: Gate, request_) -> None:
    factories.overdue(request_)
    request_.refresh_from_db()
    said = told(request_, gate.rita)
    assert f"expired at {request_.expires_at:%H:%M:%S} UTC, 1 second before" in said
    assert "Nothing was executed." in said
    assert "rejected" not in said


@pytest.mark.parametrize("status", ["withdrawn", "superseded"])
def test_what_the_agent_took_back_is_said_so(gate: Gate, status: str) -> None:
    request = states.REQUESTS[status](gate)
    said = told(request, gate.rita)
    assert ("withdrawn" if status == "withdrawn" else "replaced this") in said
    assert "There is nothing to decide." in said


TOO_FAST = PageEvidence(deferred_refusal=errors.TooFast())
EDIT = {"customer": "C-1", "amount": "39.00", "currency": "USD"}


@pytest.mark.parametrize("verdict", ["approve", "reject", "modify", "escalate"])
def test_the_refusal_of_the_page_undoes_the_verdict(
    gate: Gate, request_, verdict: str
) -> None:
    with pytest.raises(errors.TooFast):
        decide(request_, gate.rita, verdict, args=EDIT, page=TOO_FAST)
    before = request_.status, request_.version, request_.action_hash
    request_.refresh_from_db()
    assert (request_.status, request_.version, request_.action_hash) == before
    assert not Decision.objects.exists()


def test_a_stronger_reason_comes_before_that_of_the_page(gate: Gate, request_) -> None:
    """That an edit changes nothing is found after every check of the request."""
    with pytest.raises(errors.InvalidInput, match="Nothing changed"):
        decide(request_, gate.rita, "modify", page=TOO_FAST)
    decide(request_, gate.tom, "reject")
    with pytest.raises(errors.AlreadyDecided):
        decide(request_, gate.rita, page=TOO_FAST)
