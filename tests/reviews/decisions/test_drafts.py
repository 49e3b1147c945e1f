"""What was typed and not sent: kept, given back, discarded, forgotten after a day."""

from __future__ import annotations

from datetime import timedelta

import pytest

from journal import clock
from reviews.decisions import drafts
from reviews.models import ApprovalRequest, Draft
from tests import factories
from tests.conftest import Gate
from tests.factories import propose

pytestmark = pytest.mark.django_db


@pytest.fixture
def request_(gate: Gate) -> ApprovalRequest:
    return propose(gate.agent).request


def save(gate: Gate, request: ApprovalRequest, **fields) -> None:
    drafts.save_draft(
        person=fields.pop("person", gate.rita),
        request_id=request.pk,
        version=1,
        panel=fields.pop("panel", "reject"),
        **fields,
    )


def test_the_last_words_are_kept_for_each_person_and_panel(
    gate: Gate, request_
) -> None:
    save(gate, request_, reason="half")
    save(gate, request_, reason_code="unsafe", reason="half a word")
    save(gate, request_, panel="ask", reason="Which order?")
    save(gate, request_, person=gate.tom, reason="mine")
    draft = drafts.find_draft(gate.rita, request_.pk, "reject")
    assert draft is not None
    assert (draft.reason_code, draft.reason) == ("unsafe", "half a word")
    assert drafts.find_draft(gate.rita, request_.pk, "approve") is None
    listed = drafts.list_drafts(gate.rita, request_.pk)
    assert [one.reason for one in listed] == ["Which order?", "half a word"]
    drafts.discard_drafts(person=gate.rita, request_id=request_.pk, panel="ask")
    assert drafts.list_drafts(gate.rita, request_.pk) == [draft]


def test_nothing_typed_keeps_nothing(gate: Gate, request_) -> None:
    save(gate, request_, reason="a word")
    save(gate, request_, reason="  ")
    assert drafts.find_draft(gate.rita, request_.pk, "reject") is None


def test_what_no_panel_offers_is_not_kept(gate: Gate, request_) -> None:
    save(gate, request_, reason_code="because", reason="x" * 3000)
    draft = Draft.objects.get()
    assert (draft.reason_code, len(draft.reason)) == ("", 2000)


def test_edits_are_kept_as_typed_up_to_what_a_proposal_may_hold(
    gate: Gate, request_
) -> None:
    save(gate, request_, panel="modify", edits={"arg.amount": "12,5o"})
    assert Draft.objects.get().edits == {"arg.amount": "12,5o"}
    save(gate, request_, panel="modify", reason="r", edits={"arg.note": "n" * 70_000})
    assert Draft.objects.get().edits == {}


def test_what_the_tool_marks_sensitive_is_not_kept(gate: Gate) -> None:
    document = factories.document_of_tests()
    document["tools"]["pay"]["sensitive"] = ["note"]
    factories.policy(gate.people, document)
    request = propose(gate.agent).request
    save(gate, request, edits={"arg.note": "a secret", "arg.amount": "3.00"})
    assert Draft.objects.get().edits == {"arg.amount": "3.00"}
    assert factories.count_of("a secret") == 0


def test_after_a_day_it_is_forgotten(gate: Gate, request_) -> None:
    save(gate, request_, reason="old")
    assert drafts.delete_old_drafts() == 0
    yesterday = clock.now() - timedelta(hours=24, seconds=1)
    Draft.objects.update(saved_at=yesterday)
    assert drafts.list_drafts(gate.rita, request_.pk) == []
    assert drafts.delete_old_drafts() == 1
    assert not Draft.objects.exists()
