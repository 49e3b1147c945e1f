"""Words on the record: who may write them, and who reads them when."""

from __future__ import annotations

import pytest

from desk.request import load
from desk.request.history import Conversation
from journal import clock, errors
from journal.models import LogPayload, LogRecord
from policies.models import Person
from reviews.decisions import drafts
from reviews.models import ApprovalRequest, Note
from tests.conftest import Gate
from tests.factories import decide, propose

pytestmark = pytest.mark.django_db


def read_by(person: Person, request: ApprovalRequest) -> list[str]:
    who = Person.objects.get(pk=person.pk)
    found = Conversation(load.load_request(who, request.pk, clock.now())).remarks
    return [remark.text for remark in found]


def test_a_note_is_a_row_and_a_record_without_its_words(gate: Gate) -> None:
    request = propose(gate.agent).request
    drafts.add_note(request_id=request.pk, person=gate.rita, text="  seen before  ")
    assert Note.objects.get().text == "seen before"
    record = LogRecord.objects.get(kind="note.added")
    assert b"seen before" not in bytes(record.leaf)
    assert LogPayload.objects.get(record=record).values == {"text": "seen before"}


@pytest.mark.parametrize("name", ["otto", "adam", "owen"])
def test_who_decides_nothing_writes_nothing(gate: Gate, name: str) -> None:
    request = propose(gate.agent).request
    with pytest.raises(errors.NotPermitted):
        drafts.add_note(request_id=request.pk, person=gate.people[name], text="hello")


def test_an_empty_note_is_refused(gate: Gate) -> None:
    request = propose(gate.agent).request
    with pytest.raises(errors.ReasonMissing):
        drafts.add_note(request_id=request.pk, person=gate.rita, text=" \n")
    assert not Note.objects.exists()


def test_it_may_be_added_to_what_is_settled(gate: Gate) -> None:
    request = propose(gate.agent).request
    decide(request, gate.tom, "reject")
    drafts.add_note(request_id=request.pk, person=gate.rita, text="I agree")
    assert read_by(gate.tom, request) == ["I agree"]


def test_what_a_voter_wrote_is_hidden_from_the_next_one(gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    drafts.add_note(request_id=request.pk, person=gate.rita, text="look at the date")
    drafts.add_note(request_id=request.pk, person=gate.sue, text="looks fine to me")
    decide(request, gate.sue)
    assert read_by(gate.sam, request) == ["look at the date"]
    assert len(read_by(gate.sue, request)) == 2
    assert len(read_by(gate.otto, request)) == 2
    decide(request, gate.sam, "reject")
    assert len(read_by(gate.sam, request)) == 2


def test_whose_own_run_it_is_reads_no_name(gate: Gate) -> None:
    request = propose(gate.agent).request
    drafts.add_note(request_id=request.pk, person=gate.rita, text="hm")
    found = Conversation(load.load_request(gate.owen, request.pk, clock.now())).remarks
    assert [remark.who for remark in found] == ["A reviewer"]
