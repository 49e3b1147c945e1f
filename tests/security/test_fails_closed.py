"""T24, inside one process: our own parts break in the middle of a request, and what was
begun is as if it had never been."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.template import TemplateSyntaxError
from django.template.base import Template
from django.test import Client

from agents import keys
from journal import failpoints
from journal.errors import VerifierRefused
from journal.models import LogRecord
from policies import evaluation
from reviews.choices import ExecutionStatus, RequestStatus
from reviews.executions import rechecks, run
from reviews.models import ApprovalRequest, Decision, Execution, Proposal
from reviews.tool_services import readers
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.security.world import BACKEND

pytestmark = [pytest.mark.proof, pytest.mark.django_db]
Patch = pytest.MonkeyPatch
BODY = {
    "thread": "t-1",
    "tool": "pay",
    "args": {"customer": "C-1", "amount": "40.00", "currency": "USD"},
}


def fail(*args: Any, **kwargs: Any) -> Any:
    raise RecursionError("something of ours is broken")


def rows() -> tuple[int, ...]:
    models = (Proposal, ApprovalRequest, Decision, Execution, LogRecord)
    return tuple(model.objects.count() for model in models)


def granted(gate: Gate) -> Execution:
    request = propose(gate.agent).request
    decide(request, gate.rita)
    return Execution.objects.get(proposal=request.proposal_id)


def a_policy_that_raises_blocks(gate: Gate, patch: Patch) -> None:
    before = rows()
    patch.setattr(evaluation, "evaluate", fail)
    key = keys.issue_key(agent=gate.agent, by=gate.owen)
    client = Client(raise_request_exception=False)
    told = client.post(
        "/api/v1/proposals",
        BODY,
        content_type="application/json",
        headers={"Authorization": f"Bearer {key}", "Idempotency-Key": "k-1"},
    )
    if told.status_code == 201:
        assert told.json()["status"] == "blocked"
    else:
        assert (told.status_code, told.json()["code"]) == (500, "server")
        assert "Reference" in told.json()["detail"]
        assert rows()[:4] == before[:4]


def a_page_that_cannot_be_made_says_so(gate: Gate, patch: Patch) -> None:
    request = propose(gate.agent).request
    before, real = rows(), Template.render

    def render(self: Template, context: Any) -> Any:
        if self.name and self.name.startswith("desk/"):
            raise TemplateSyntaxError("broken")
        return real(self, context)

    patch.setattr(Template, "render", render)
    client = Client(raise_request_exception=False)
    client.force_login(gate.rita, BACKEND)
    page = client.get(f"/requests/{request.pk}/")
    assert page.status_code == 500
    assert b"500 \xc2\xb7 server" in page.content
    assert rows() == before


def a_verdict_that_breaks_half_way_is_none(gate: Gate, patch: Patch) -> None:
    request = propose(gate.agent).request
    before = rows()
    patch.setattr(failpoints, "point", fail)
    with pytest.raises(RecursionError):
        decide(request, gate.rita)
    assert rows() == before
    request.refresh_from_db()
    assert request.status == RequestStatus.PENDING


def a_verifier_that_raises_refuses(gate: Gate, patch: Patch) -> None:
    document = factories.document_of_tests()
    broken = {"kind": "callable", "path": f"{__name__}.fail", "options": {}}
    document["verifiers"] = {"money": [broken]}
    factories.policy(gate.people, document)
    request = propose(gate.agent).request
    with pytest.raises(VerifierRefused):
        decide(request, gate.rita)
    request.refresh_from_db()
    assert request.status == RequestStatus.PENDING


def a_reader_that_raises_holds_the_effect(gate: Gate, patch: Patch) -> None:
    execution = granted(gate)
    patch.setattr(readers, "load_function", lambda path: fail)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == (ExecutionStatus.QUEUED, "unread")


def a_recheck_that_raises_holds_the_effect(gate: Gate, patch: Patch) -> None:
    execution = granted(gate)
    patch.setattr(rechecks, "find_refusal", fail)
    with pytest.raises(RecursionError):
        run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.CLAIMED


PROBES = (
    a_policy_that_raises_blocks,
    a_page_that_cannot_be_made_says_so,
    a_verdict_that_breaks_half_way_is_none,
    a_verifier_that_raises_refuses,
    a_reader_that_raises_holds_the_effect,
    a_recheck_that_raises_holds_the_effect,
)


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.__name__)
def test_what_breaks_inside_has_no_effect(
    gate: Gate, monkeypatch: Patch, probe: Callable[[Gate, Patch], None]
) -> None:
    probe(gate, monkeypatch)
    assert worlds.effects() == []


def test_the_probes_are_counted(record_proof: Callable[[str, str], None]) -> None:
    record_proof(
        "T24",
        f"{len(PROBES)} of our own parts broken in the middle (policy, page, verdict,"
        " verifier, reader, re-check): 0 effects, 0 verdicts, the page says so",
    )
