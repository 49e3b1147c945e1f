"""Escalations: the list, one with its panel, and what supervisors do beside it."""

from __future__ import annotations

import pytest

from desk.request.escalation import LEANING_WORDS
from journal.log import Actor
from journal.models import LogRecord
from policies import people
from policies.choices import Role
from policies.models import Queue
from reviews import deadlines
from reviews.decisions import returns
from reviews.decisions.submission import PageEvidence
from reviews.models import ApprovalRequest, Note
from tests import factories
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import decide, propose
from tests.markup import find_element, read_page, read_text

NOTE = "the photograph is missing"
ADVICE = "Ask for the photograph first."


def escalated(gate: Gate, *flags: str) -> ApprovalRequest:
    request = propose(gate.agent).request
    page = PageEvidence(flags=flags)
    said = {"reason_code": "unsafe", "reason": NOTE, "page": page}
    return decide(request, gate.rita, "escalate", **said)


def test_the_panel_says_who_why_and_what_silence_does(gate: Gate, as_: SignIn) -> None:
    request = escalated(gate)
    source = read_page(as_("sue").get(f"/escalations/{request.pk}/"))
    panel = find_element(source, "escalation")
    for said in ("Rita Example", "Unsafe", NOTE):
        assert said in panel
    assert 'data-testid="return"' in panel
    assert 'data-testid="show-view"' not in panel
    assert "?mode=paused" in panel


@pytest.mark.parametrize("name", ["rita", "tom", "otto", "adam", "owen"])
def test_who_is_no_supervisor_of_it_gets_no_panel(
    gate: Gate, as_: SignIn, name: str
) -> None:
    request = escalated(gate)
    response = as_(name).get(f"/escalations/{request.pk}/")
    assert 'data-testid="escalation"' not in read_page(response)
    for path in ("return", "assign", "view", "arbitrate"):
        sent = {"guidance": ADVICE, "to": gate.sam.public_id, "text": "x"}
        answer = as_(name).post(f"/requests/{request.pk}/{path}/", sent)
        assert answer.status_code in {403, 404, 409, 422}, path
    assert ApprovalRequest.objects.get(pk=request.pk).version == 2


def test_the_reviewers_view_is_hidden_until_it_is_asked_for(
    gate: Gate, as_: SignIn
) -> None:
    request = escalated(gate, "leans_reject")
    sue, path = as_("sue"), f"/escalations/{request.pk}/"
    leans = LEANING_WORDS["leans_reject"]
    assert leans not in read_page(sue.get(path))
    response = sue.post(f"/requests/{request.pk}/view/", follow=True)
    assert leans in read_text(response, "escalation")
    assert LogRecord.objects.filter(kind="request.view_shown").count() == 1
    assert leans not in read_page(as_("sam").get(path))


def test_the_leaning_comes_from_the_panel_that_escalates(
    gate: Gate, as_: SignIn
) -> None:
    request = propose(gate.agent).request
    path = f"/requests/{request.pk}/decide/"
    source = read_page(as_("rita").get(f"{path}?arm=escalate"))
    assert 'name="leaning" value="reject"' in source
    assert 'name="leaning"' not in read_page(as_("rita").get(f"{path}?arm=reject"))


def test_it_is_given_back_with_guidance(gate: Gate, as_: SignIn) -> None:
    request = escalated(gate)
    sent = {"guidance": ADVICE}
    response = as_("sue").post(f"/requests/{request.pk}/return/", sent, follow=True)
    assert read_text(response, "message")
    source = read_page(as_("rita").get(f"/requests/{request.pk}/"))
    guidance = find_element(source, "guidance")
    assert ADVICE in guidance
    assert "Sue" not in guidance
    assert 'data-testid="verb-approve"' in source
    assert "Returned with guidance" in read_page(as_("tom").get("/queue/"))


def test_a_return_without_words_keeps_its_place(gate: Gate, as_: SignIn) -> None:
    request = escalated(gate)
    response = as_("sue").post(f"/requests/{request.pk}/return/", {"guidance": " "})
    assert response.status_code == 422
    assert 'id="guidance-error"' in read_page(response)
    assert as_("sue").get(f"/requests/{request.pk}/return/").status_code == 405


def test_what_was_typed_outlives_a_refusal(gate: Gate, as_: SignIn) -> None:
    request = escalated(gate)
    decide(request, gate.sam, "reject")
    sent = {"guidance": ADVICE}
    response = as_("sue").post(f"/requests/{request.pk}/return/", sent)
    assert response.status_code == 409
    assert ADVICE in read_page(response)


def test_it_is_given_to_a_specialist(gate: Gate, as_: SignIn) -> None:
    request = escalated(gate)
    path = f"/requests/{request.pk}/assign/"
    wrong = as_("sue").post(path, {"to": gate.otto.public_id})
    assert wrong.status_code == 422
    right = as_("sue").post(path, {"to": gate.sam.public_id}, follow=True)
    assert "Sam Example" in read_text(right, "message")
    assert request.pk in read_page(as_("sam").get("/queue/?tab=mine"))
    assert request.pk not in read_page(as_("tom").get("/queue/?tab=mine"))


def test_a_disagreement_lands_here_with_both_answers(gate: Gate, as_: SignIn) -> None:
    request = propose(gate.agent, amount="899.00").request
    decide(request, gate.sue, reason_code="verified", reason="I rang them.")
    decide(request, gate.sam, "reject", reason_code="unsafe", reason="Wrong account.")
    split = read_text(as_("sue").get("/escalations/"), "splits")
    for said in ("Sue Example", "I rang them.", "Sam Example", "Wrong account."):
        assert said in split
    path = f"/requests/{request.pk}/arbitrate/"
    assert as_("sue").post(path, {"text": ""}).status_code == 422
    as_("sue").post(path, {"text": "Check the account number."})
    late = as_("sam").post(path, {"text": "Ring the bank."})
    assert late.status_code == 409
    assert "Ring the bank." in read_page(late)
    assert Note.objects.get().text == "Check the account number."
    assert 'data-testid="splits"' not in read_page(as_("sue").get("/escalations/"))
    assert 'data-testid="splits"' not in read_page(as_("rita").get("/escalations/"))


def test_the_week_in_figures(gate: Gate, as_: SignIn) -> None:
    money = Queue.objects.get(name="money")
    for name in ("sid", "sol"):  # so that enough are left to decide
        people.admit_to_queues(
            factories.person(name, Role.SUPERVISOR), [money], by=Actor("system", "test")
        )
    for number in range(3):
        request = propose(gate.agent, amount="899.00", customer=f"C-{number}").request
        decide(request, gate.sue, "escalate", reason_code="unsafe")
    decide(propose(gate.agent, customer="C-9").request, gate.rita)
    page = as_("sam").get("/escalations/")
    assert read_text(page, "share") == "75 % of 4"
    assert read_text(page, "rule").startswith("3 ")
    assert 'data-testid="figures"' not in read_page(as_("rita").get("/escalations/"))


def test_what_expired_is_shown_to_supervisors(gate: Gate, as_: SignIn) -> None:
    request = propose(gate.agent).request
    factories.overdue(request)
    deadlines.expire_chunk()
    assert request.pk in read_page(as_("sue").get("/escalations/"))
    assert request.pk in read_page(as_("rita").get("/queue/?tab=done"))


def test_a_list_of_what_expired_says_what_it_leaves_out(
    gate: Gate, as_: SignIn
) -> None:
    for number in range(22):
        factories.overdue(propose(gate.agent, thread=f"t-{number}").request)
    deadlines.expire_chunk()
    page = as_("sue").get("/escalations/")
    assert (
        read_text(page, "cut") == "2 more are not listed here. The audit log has all."
    )
    assert 'href="/log/?flag=expired"' in find_element(read_page(page), "cut")


@pytest.mark.parametrize("rows", [1, 6])
def test_its_queries_do_not_grow(
    gate: Gate, as_: SignIn, django_assert_max_num_queries, rows: int
) -> None:
    for number in range(rows):
        request = propose(
            gate.agent, customer=f"C-{number}", thread=f"t-{number}"
        ).request
        decide(request, gate.rita, "escalate", reason_code="unsafe")
    client = as_("sue")
    client.get("/escalations/")
    with django_assert_max_num_queries(15):
        client.get("/escalations/")


def test_a_returned_request_can_be_escalated_again(gate: Gate, as_: SignIn) -> None:
    request = escalated(gate)
    returns.return_with_guidance(
        request_id=request.pk, person=gate.sue, guidance=ADVICE
    )
    decide(request, gate.tom, "escalate", reason_code="unclear")
    source = read_page(as_("sam").get(f"/escalations/{request.pk}/"))
    assert "Tom Example" in source.split('data-testid="escalation"')[1]
