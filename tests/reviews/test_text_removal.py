"""The retention rule removes old texts, and the log, the hashes and the pages stay."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from hitl import tasks
from journal import clock, log, sequencer, verification
from journal.models import LogPayload, LogRecord
from reviews import text_removal
from reviews.decisions import drafts
from reviews.models import (
    ApprovalRequest,
    Decision,
    Note,
    Question,
    Revision,
)
from reviews.questions import questions
from tests import worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews.questions.asking import ask

pytestmark = pytest.mark.django_db
DAYS = 120
SAYS_SO = "Text removed after 120 days by the retention rule."


@pytest.fixture
def keep(settings: Any) -> Callable[..., None]:
    """Set how many days a class of texts stays."""

    def set_days(**days: int) -> None:
        changed = {f"keep_{name}_days": many for name, many in days.items()}
        settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=changed)

    return set_days


def make_older(model: type[Any], column: str, days: int = DAYS + 1) -> None:
    at = clock.now() - timedelta(days=days)
    for pk in model._base_manager.values_list("pk", flat=True):
        worlds.rewrite(model, pk, **{column: at})


def list_removals() -> list[dict[str, Any]]:
    rows = LogRecord.objects.filter(kind="texts.removed").order_by("pk")
    return [row.data for row in rows]


def check_log() -> None:
    sequencer.sequence_records()
    assert verification.verify_log().faults == []


def rejected(gate: Gate, note: str = "") -> ApprovalRequest:
    request = propose(gate.agent, rationale="They called twice.").request
    if note:
        drafts.add_note(request_id=request.pk, person=gate.rita, text=note)
    decide(request, gate.tom, "reject")
    request.refresh_from_db()
    return request


def test_nothing_is_removed_unless_it_is_asked_for(gate: Gate) -> None:
    rejected(gate, "seen before")
    for model, column in ((Note, "at"), (Revision, "created_at")):
        make_older(model, column, 5000)
    assert text_removal.remove_old_texts() == 0
    assert list_removals() == []


def test_notes_and_messages_of_settled_requests_are_removed_once(
    gate: Gate, keep: Callable[..., None]
) -> None:
    keep(notes=DAYS)
    request = rejected(gate, "seen before")
    waiting = propose(gate.agent, customer="C-9").request
    drafts.add_note(request_id=waiting.pk, person=gate.rita, text="call them")
    assert tasks.prune() == 0
    make_older(Note, "at")
    assert (tasks.prune(), tasks.prune()) == (1, 0)
    texts = dict(Note.objects.values_list("request", "text"))
    assert texts == {request.pk: SAYS_SO, waiting.pk: "call them"}
    assert list_removals() == [{"what": "notes", "count": 1, "days": DAYS}]
    check_log()


def test_questions_keep_who_answered(gate: Gate, keep: Callable[..., None]) -> None:
    keep(questions=DAYS)
    answered, declined = ask(gate.agent), ask(gate.agent, text="And order 7?")
    answer = {"how": "card", "amount": 5.5}
    questions.answer_question(question_id=answered.pk, person=gate.rita, answer=answer)
    questions.decline_question(
        question_id=declined.pk, person=gate.rita, note="Ask Tom."
    )
    waiting = ask(gate.agent, text="And order 8?")
    assert text_removal.remove_questions() == 0
    for row in (answered, declined):
        worlds.rewrite(
            Question, row.pk, settled_at=clock.now() - timedelta(days=DAYS + 1)
        )
    assert text_removal.remove_questions() == 2
    for row in (answered, declined):
        row.refresh_from_db()
        assert (row.text, row.settled_by, row.note) == (SAYS_SO, gate.rita, "")
    assert (answered.answer, declined.answer) == ({}, None)
    waiting.refresh_from_db()
    assert waiting.text == "And order 8?"


@pytest.mark.parametrize("what", [1, 3])
def test_old_texts_of_the_log_leave_and_the_log_still_proves_itself(
    gate: Gate, keep: Callable[..., None], monkeypatch: pytest.MonkeyPatch, what: int
) -> None:
    """Also when a chunk has fewer than there are."""
    monkeypatch.setattr(text_removal, "CHUNK", what)
    old = clock.now() - timedelta(days=DAYS + 1)
    for number in range(3):
        private = {"text": f"word {number}"}
        log.append("a.b", actor=log.SYSTEM, at=old, private=private)
    log.append("c.d", actor=log.SYSTEM, at=clock.now(), private={"text": "new"})
    sequencer.sequence_records()
    before = verification.verify_log()
    keep(log_texts=DAYS)
    assert text_removal.remove_old_texts() == 3
    assert [row.values for row in LogPayload.objects.all()] == [{"text": "new"}]
    assert sum(one["count"] for one in list_removals()) == 3
    check_log()
    after = verification.verify_log(at=before.records)
    assert after.roots[before.records] == before.root
    assert text_removal.remove_old_texts() == 0


def test_the_database_accepts_no_other_text_in_its_place(
    gate: Gate, keep: Callable[..., None]
) -> None:
    """Nor an earlier removal, nor a second one."""
    request = rejected(gate, "seen before")
    note = Note.objects.get()
    change = {"text": SAYS_SO, "removed_after": DAYS}

    def refuses(**changed: Any) -> bool:
        try:
            with transaction.atomic():
                Note.objects.filter(pk=note.pk).update(**changed)
        except IntegrityError:
            return True
        return False

    assert refuses(**change), "it is young"
    make_older(Note, "at")
    assert refuses(**change | {"text": "I never said so."})
    assert refuses(**change | {"removed_after": 90})
    assert refuses(**change, author=gate.tom)
    assert not refuses(**change)
    assert refuses(**change | {"removed_after": 100})
    make_older(Revision, "created_at")
    forged = b'{"args":{"amount":"1.00"},"preconditions":{}}'
    with pytest.raises(IntegrityError), transaction.atomic():
        Revision.objects.filter(proposal=request.proposal_id).update(
            **text_removal.NOTHING | {"canonical": forged},
            evidence=[],
            removed_after=DAYS,
        )


def test_arguments_stay_while_a_request_waits_or_an_effect_is_queued(
    gate: Gate, keep: Callable[..., None]
) -> None:
    keep(arguments=DAYS)
    waiting = propose(gate.agent, customer="C-3").request
    queued = propose(gate.agent, customer="C-2").request
    decide(queued, gate.rita)
    old = rejected(gate)
    for model, column in ((Revision, "created_at"), (Decision, "at")):
        make_older(model, column)
    assert text_removal.remove_arguments() == 1
    removed = Revision.objects.get(removed_after=DAYS)
    assert removed.proposal_id == old.proposal_id
    assert (removed.args, removed.rationale, removed.reading) == ({}, "", {})
    for request in (waiting, queued):
        assert Revision.objects.get(proposal=request.proposal_id).args
    assert list_removals() == [{"what": "arguments", "count": 1, "days": DAYS}]
    check_log()
