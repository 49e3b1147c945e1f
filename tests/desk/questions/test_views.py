"""The list of questions, and the page that answers one."""

from __future__ import annotations

import re
from typing import Any

import pytest

from reviews.models import Question
from reviews.questions import addressees, questions
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.reviews.questions.asking import ask, move_past_deadline

SENT: dict[str, Any] = {
    "answer.how": "voucher",
    "answer.amount": "12.50",
    "answer.parcels": "2",
    "answer.notify": "false",
    "answer.from_day": "2026-11-28",
    "answer.labels": ["urgent", "fragile"],
    "answer.remark": "Handle\r\nwith care",
    "act": "answer",
}
READ = {
    "how": "voucher",
    "amount": 12.5,
    "parcels": 2,
    "notify": False,
    "from_day": "2026-11-28",
    "labels": ["urgent", "fragile"],
    "remark": "Handle\nwith care",
}


def test_a_reviewer_answers_by_the_form(gate: Gate, as_: SignIn) -> None:
    question = ask(gate.agent)
    browser = as_("rita")
    listed = browser.get("/questions/").content.decode()
    assert "How do we refund order 1180?" in listed
    assert 'id="badge-questions"' in listed
    page = browser.get(f"/questions/{question.pk}/").content.decode()
    assert 'name="answer.how"' in page
    assert "To the card" in page
    assert browser.post(f"/questions/{question.pk}/", SENT).status_code == 302
    question.refresh_from_db()
    assert question.answer == READ
    assert question.settled_by == gate.rita
    after = browser.get(f"/questions/{question.pk}/").content.decode()
    assert "As a voucher" in after
    assert 'data-testid="answer"' not in after


def test_an_error_keeps_what_was_typed(gate: Gate, as_: SignIn) -> None:
    question = ask(gate.agent)
    sent = {**SENT, "answer.amount": "12,50", "answer.from_day": "Monday", "note": "Hm"}
    refused = as_("rita").post(f"/questions/{question.pk}/", sent)
    page = refused.content.decode()
    assert refused.status_code == 422
    assert "Enter a number, such as 12.50." in page
    assert 'value="12,50"' in page
    assert "Handle" in page
    assert "Hm</textarea>" in page
    question.refresh_from_db()
    assert question.status == "open"


def test_declining_needs_a_reason(gate: Gate, as_: SignIn) -> None:
    question = ask(gate.agent)
    browser, path = as_("rita"), f"/questions/{question.pk}/"
    refused = browser.post(path, {**SENT, "act": "decline", "note": " "})
    assert refused.status_code == 422
    assert "Say why you decline." in refused.content.decode()
    assert browser.post(path, {"act": "decline", "note": "Ask Sue."}).status_code == 302
    question.refresh_from_db()
    assert (question.status, question.note) == ("declined", "Ask Sue.")


@pytest.mark.parametrize("end", ["expired", "answered"])
def test_a_late_answer_says_so_and_is_kept(gate: Gate, as_: SignIn, end: str) -> None:
    question = ask(gate.agent)
    browser = as_("rita")
    if end == "expired":
        move_past_deadline(question)
    else:
        questions.answer_question(
            question_id=question.pk,
            person=gate.tom,
            answer={"how": "card", "amount": 1},
        )
    late = browser.post(f"/questions/{question.pk}/", SENT)
    page = late.content.decode()
    assert late.status_code == (410 if end == "expired" else 409)
    assert "not recorded" in page
    assert "Handle" in page


def test_who_is_not_asked_does_not_answer(gate: Gate, as_: SignIn) -> None:
    question = ask(gate.agent, "@tom")
    assert as_("rita").get(f"/questions/{question.pk}/").status_code == 404
    owner = as_("owen").get(f"/questions/{question.pk}/").content.decode()
    assert "This asks somebody else." in owner
    assert as_("owen").post(f"/questions/{question.pk}/", SENT).status_code == 403
    assert Question.objects.get().status == "open"


def test_the_text_of_an_agent_is_inert(gate: Gate, as_: SignIn) -> None:
    text = "<b>Click</b> https://evil.example \u202egnp.exe"
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "title": "<i>Name</i>"}},
    }
    question = ask(gate.agent, text=text, schema=schema)
    page = as_("rita").get(f"/questions/{question.pk}/").content.decode()
    assert "<b>Click" not in page
    assert "<i>Name" not in page
    assert "\u202e" not in page
    assert 'href="https://evil' not in page


def test_the_navigation_counts_what_the_list_offers(gate: Gate, as_: SignIn) -> None:
    for to in ("money", "@owen", "@rita", "@adam"):
        ask(gate.agent, to)
    move_past_deadline(ask(gate.agent))
    for name, person in gate.people.items():
        page = as_(name).get("/questions/").content.decode()
        shown = re.search(r'data-testid="badge-questions"\s*>(\d*)<', page)
        assert shown is not None, name
        offered = addressees.select_answerable(person).count()
        assert int(shown[1] or 0) == offered, name


def test_the_owner_never_learns_who_answered(gate: Gate, as_: SignIn) -> None:
    question = ask(gate.agent)
    questions.decline_question(question_id=question.pk, person=gate.rita, note="No.")
    for path in ("/questions/", f"/questions/{question.pk}/"):
        assert str(gate.rita) not in as_("owen").get(path).content.decode()
        assert str(gate.rita) in as_("tom").get(path).content.decode()
