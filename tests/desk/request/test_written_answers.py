"""A written answer before an approval, where the gate itself found a risk indicator."""

from __future__ import annotations

import json
from typing import Any

import pytest

from journal import errors
from journal.models import LogRecord
from policies import tools
from reviews.batches import similarity
from reviews.decisions import decide as decisions
from reviews.models import ApprovalRequest, Decision
from reviews.people import tokens
from reviews.requests import versions
from tests import factories, worlds
from tests.conftest import Gate
from tests.desk.api.test_people import call, verdict
from tests.desk.conftest import HTMX, SignIn
from tests.desk.request.test_views import edited, panel, url
from tests.factories import propose, said
from tests.markup import read_page

CONFLICT = {
    "id": "arrived",
    "text": "The customer says lost; the carrier says delivered",
    "when": "args.customer == 'C-1' && before.arrived",
}
ON_LOST = "'note' in args && args.note == 'lost' && before.arrived"
PAYMENT = {"customer": "C-1", "amount": "40.00", "currency": "USD"}
FIELD = 'data-testid="written"'
WHY = "The carrier confirmed by phone that it was stolen."


def flag_payments(gate: Gate, conflict: dict[str, str] = CONFLICT, **desk: Any) -> None:
    """Activate a policy whose payments carry facts that make risk indicators."""
    document = factories.document_of_tests()
    document["desk"] |= {"micro_check": {"high": 1}, **desk}
    document["tools"]["pay"] |= {
        "facts": ["arrived", "payments_before"],
        "review": {"conflicts": [conflict]},
        "presenter": "money",
        "reversal": document["tools"]["repay"]["reversal"],
        "batchable": document["tools"]["repay"]["batchable"],
    }
    factories.policy(gate.people, document)


def pay(gate: Gate, args: Any = None, **facts: Any) -> ApprovalRequest:
    worlds.WORLD["facts"] = {"arrived": False, "payments_before": 3, **facts}
    proposal = propose(gate.agent, args=args)
    assert not proposal.blocked_by, proposal.current.evaluation
    request: ApprovalRequest = proposal.request
    return request


@pytest.fixture
def contradicted(gate: Gate) -> ApprovalRequest:
    flag_payments(gate)
    return pay(gate, arrived=True)


@pytest.mark.parametrize("headers", [{}, HTMX])
def test_a_contradiction_is_answered_in_writing_and_the_answer_is_recorded(
    contradicted: ApprovalRequest, as_: SignIn, headers: dict[str, str]
) -> None:
    client = as_("rita", **headers)
    assert 'data-testid="writes"' in read_page(client.get(url(contradicted)))
    source = read_page(client.get(url(contradicted, "decide"), {"arm": "approve"}))
    assert FIELD in source
    assert 'data-testid="question"' not in source
    sent = panel(contradicted, "approve", reason="<b>sure</b>")
    for written in ("", "it is", "it is"):
        response = client.post(
            url(contradicted, "decide"), {**sent, "written": written}
        )
        source = read_page(response)
        assert response.status_code == 422
        assert f'value="{written}"' in source
        assert "&lt;b&gt;sure&lt;/b&gt;" in source
    assert not Decision.objects.exists()
    response = client.post(url(contradicted, "decide"), {**sent, "written": WHY})
    assert response.status_code == 303
    check = Decision.objects.get().check_asked
    assert check["question"] == "written:contradiction"
    assert check["asked"].startswith(CONFLICT["text"])
    assert (check["written"], check["checked"]) == (WHY, False)
    record = LogRecord.objects.get(kind="decision.recorded")
    data = json.loads(bytes(record.leaf))["data"]
    assert data["written_answer"] == "written:contradiction"
    assert "carrier" not in str(data)
    number = Decision.objects.get().pk
    path = f"/requests/{contradicted.pk}/as-seen/{number}/"
    assert WHY in read_page(as_("otto").get(path))


def test_an_answer_that_the_page_knows_is_compared(gate: Gate, as_: SignIn) -> None:
    flag_payments(gate)
    request = pay(gate, payments_before=0)
    client = as_("rita")
    response = client.post(
        url(request, "decide"), panel(request, "approve", written="C-2 of course")
    )
    assert response.status_code == 422
    assert "Check: the figures on top." in read_page(response)
    sent = panel(request, "approve", written=" c-1 ")
    assert client.post(url(request, "decide"), sent).status_code == 303
    assert Decision.objects.get().check_asked["checked"] is True


def test_an_edit_needs_it_and_a_rejection_does_not(
    contradicted: ApprovalRequest, as_: SignIn
) -> None:
    client = as_("rita")
    changed = edited(contradicted, amount="40.00")
    assert client.post(url(contradicted, "decide"), changed).status_code == 422
    sent = panel(contradicted, "reject", reason_code="wrong_target")
    assert client.post(url(contradicted, "decide"), sent).status_code == 303


def test_nobody_approves_it_from_elsewhere(
    contradicted: ApprovalRequest, gate: Gate
) -> None:
    with pytest.raises(errors.AttentionCheckFailed, match="on its page"):
        decisions.decide_request(said(contradicted, gate.rita))
    token = tokens.create_token(person=gate.rita, name="script")
    path = f"/requests/{contradicted.pk}"
    assert call(path, token=token).json()["attention_check"] is True
    response = call(f"{path}/decide", verdict(contradicted), token=token)
    assert (response.status_code, response.json()["code"]) == (422, "check")
    decisions.decide_request(said(contradicted, gate.rita, "reject"))


def test_the_policy_names_the_risk_levels(gate: Gate) -> None:
    flag_payments(gate, written_answer=["critical"])
    request = pay(gate, arrived=True)
    decisions.decide_request(said(request, gate.rita))
    assert Decision.objects.get().check_asked == {}


def test_a_second_person_takes_its_place(gate: Gate) -> None:
    flag_payments(gate)
    request = pay(gate, arrived=True)
    request.sealed.steps = [{"role": "reviewer", "required": 2}]
    assert not versions.needs_written_answer(request.sealed)


def test_it_is_in_no_batch(contradicted: ApprovalRequest) -> None:
    version = contradicted.sealed
    definition = tools.load_definition(version.revision.known_tool)
    assert version.revision.facts["indicators"] == ["contradiction"]
    assert not similarity.may_be_batched(version, definition)
    del version.revision.facts["indicators"]
    assert similarity.may_be_batched(version, definition)


def test_the_preview_of_an_edit_asks_what_the_edit_needs(
    gate: Gate, as_: SignIn
) -> None:
    flag_payments(gate, conflict=CONFLICT | {"when": ON_LOST})
    request = pay(gate, args={**PAYMENT, "note": "late"}, arrived=True)
    client, path = as_("rita", **HTMX), url(request, "decide")
    assert FIELD not in read_page(client.get(path, {"arm": "modify"}))
    sent = edited(request, note="lost")
    assert FIELD in read_page(client.post(path + "?check=1", sent))
    for written in ("", "it is"):
        refused = client.post(path, {**sent, "written": written})
        assert refused.status_code == 422
        source = read_page(refused)
        assert FIELD in source
        assert f'value="{written}"' in source
    assert not Decision.objects.exists()
    done = client.post(path, {**sent, "written": WHY})
    assert done.status_code in {200, 303}
    decision = Decision.objects.get()
    assert decision.counts
    assert decision.check_asked["written"] == WHY


def test_an_edit_for_another_person_asks_its_editor_nothing(
    gate: Gate, as_: SignIn
) -> None:
    flag_payments(gate, conflict=CONFLICT | {"when": ON_LOST})
    request = pay(gate, args={**PAYMENT, "note": "late"}, arrived=True)
    client, path = as_("rita", **HTMX), url(request, "decide")
    sent = edited(request, note="lost", amount="60.00")
    source = read_page(client.post(path + "?check=1", sent))
    assert 'data-line="second_person"' in source
    assert "because it raises the amount" in source
    assert FIELD not in source
    client.post(path, sent)
    assert not Decision.objects.get().counts
    source = read_page(as_("tom").get(path, {"arm": "approve"}))
    assert FIELD in source
