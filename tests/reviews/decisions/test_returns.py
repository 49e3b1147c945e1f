from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from guardian.shortcuts import remove_perm

from hitl import tasks
from journal import clock, errors
from journal.models import LogRecord, OutboxMessage
from policies.models import Person, Queue
from reviews.choices import NoteKind, RequestStatus
from reviews.decisions import returns
from reviews.holds import take
from reviews.models import ApprovalRequest, Hold, Note
from reviews.requests import versions
from tests import factories
from tests.conftest import Gate
from tests.factories import decide, propose

ADVICE = "Ask for the photograph first."


def escalated(gate: Gate, **fields: Any) -> ApprovalRequest:
    request = propose(gate.agent, **fields).request
    return decide(request, gate.rita, "escalate", reason_code="unsafe")


def give_back(request: ApprovalRequest, person: Person, text: str = ADVICE) -> Any:
    return returns.return_with_guidance(
        request_id=request.pk,
        person=Person.objects.get(pk=person.pk),
        guidance=text,
    )


def now_of(request: ApprovalRequest) -> ApprovalRequest:
    return ApprovalRequest.objects.get(pk=request.pk)


def test_a_return_asks_whom_the_policy_asks_again(gate: Gate) -> None:
    request = escalated(gate)
    assert now_of(request).supervisors_only is False
    give_back(request, gate.sue)
    found = now_of(request)
    assert (found.version, found.tier, found.status) == (3, "approve", "pending")
    assert found.sealed.steps == [{"role": "reviewer", "required": 1}]
    assert found.sealed.cause == "returned"
    assert (found.sealed.escalated_by, found.closed_to) == ([], [])


def test_who_escalated_may_answer_after_a_return(gate: Gate) -> None:
    request = escalated(gate)
    with pytest.raises(errors.AlreadyEscalated):
        decide(request, gate.rita)
    give_back(request, gate.sue)
    decide(request, gate.rita)
    assert now_of(request).status == RequestStatus.AUTHORIZED


def test_the_guidance_is_kept_and_logged_without_its_words(gate: Gate) -> None:
    request = escalated(gate)
    give_back(request, gate.sue)
    note = Note.objects.get()
    assert (note.kind, note.text, note.version) == (NoteKind.GUIDANCE, ADVICE, 3)
    kinds = list(LogRecord.objects.values_list("kind", flat=True))
    assert kinds.count("request.returned") == 1
    assert not any(
        ADVICE.encode() in bytes(one.leaf) for one in LogRecord.objects.all()
    )


def test_time_is_topped_up_within_the_rules_most(gate: Gate) -> None:
    request = escalated(gate)
    soon = clock.now() + timedelta(minutes=2)
    most = clock.now() + timedelta(minutes=9)
    rows = ApprovalRequest.objects.filter(pk=request.pk)
    rows.update(expires_at=soon, expires_at_most=most)
    give_back(request, gate.sue)
    assert now_of(request).expires_at == most


def test_time_is_never_taken_away(gate: Gate) -> None:
    request = escalated(gate)
    before = now_of(request).expires_at
    give_back(request, gate.sue)
    assert now_of(request).expires_at >= before


def test_complete_steps_stay_complete(gate: Gate) -> None:
    document = factories.document_of_tests()
    document["steps"]["approve"] = [
        {"role": "reviewer", "required": 1},
        {"role": "supervisor", "required": 1},
    ]
    factories.policy(gate.people, document)
    request = propose(gate.agent).request
    decide(request, gate.tom)
    decide(request, gate.rita, "escalate", reason_code="unsafe")
    give_back(request, gate.sue)
    found = now_of(request).sealed
    assert found.steps == [{"role": "supervisor", "required": 1}]
    assert found.carried == [gate.tom.public_id]
    with pytest.raises(errors.NotPermitted):
        decide(request, gate.tom)


def test_what_nobody_passed_up_is_not_returned(gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    with pytest.raises(errors.Conflict):
        give_back(request, gate.sue)


def test_a_second_return_needs_a_second_escalation(gate: Gate) -> None:
    request = escalated(gate)
    give_back(request, gate.sue)
    with pytest.raises(errors.Conflict):
        give_back(request, gate.sue)
    decide(request, gate.tom, "escalate", reason_code="unsafe")
    give_back(request, gate.sam)
    assert now_of(request).version == 5


def test_the_agent_gets_no_supervisor_more_after_a_return(gate: Gate) -> None:
    request = escalated(gate)
    give_back(request, gate.sue)
    factories.revise(gate.agent, request.proposal)
    assert not versions.is_escalated(now_of(request))
    assert now_of(request).sealed.steps == [{"role": "reviewer", "required": 1}]


@pytest.mark.parametrize("name", ["rita", "tom", "adam", "otto", "owen"])
def test_only_a_supervisor_of_the_queue_returns(gate: Gate, name: str) -> None:
    request = escalated(gate)
    with pytest.raises(errors.NotPermitted):
        give_back(request, gate.people[name])
    remove_perm("policies.decide", gate.sue, Queue.objects.get(name="money"))
    with pytest.raises(errors.NotPermitted):
        give_back(request, gate.sue)


def test_without_guidance_nothing_is_returned(gate: Gate) -> None:
    request = escalated(gate)
    with pytest.raises(errors.ReasonMissing):
        give_back(request, gate.sue, "  ")
    assert now_of(request).version == 2


def test_what_is_over_is_not_returned(gate: Gate) -> None:
    request = escalated(gate)
    factories.overdue(request)
    with pytest.raises(errors.RequestExpired):
        give_back(request, gate.sue)
    done = escalated(gate, customer="C-2")
    decide(done, gate.sue, "reject")
    with pytest.raises(errors.AlreadyDecided):
        give_back(done, gate.sue)


def test_a_return_waits_for_who_holds_it_and_frees_ones_own(gate: Gate) -> None:
    request = escalated(gate)
    take.take_hold(request_id=request.pk, person=gate.sam)
    with pytest.raises(errors.HeldByAnother):
        give_back(request, gate.sue)
    give_back(request, gate.sam)
    assert Hold.objects.get(pk=request.pk).holder is None


def mailed(topic: str) -> None:
    tasks.notify_people(OutboxMessage.objects.get(topic=topic).pk)


def test_the_reviewers_are_told_of_a_return(gate: Gate, mailoutbox: Any) -> None:
    request = escalated(gate)
    give_back(request, gate.sue)
    mailed("request.returned")
    told = {address for mail in mailoutbox for address in mail.to}
    assert {"rita@example.com", "tom@example.com"} <= told
    assert all(ADVICE not in mail.body for mail in mailoutbox)


def test_a_question_is_given_to_one_and_open_to_all(
    gate: Gate, mailoutbox: Any
) -> None:
    request = propose(gate.agent).request
    returns.assign_request(request_id=request.pk, person=gate.sue, to=gate.tom)
    found = now_of(request)
    assert (found.assignee, found.version) == (gate.tom, 1)
    mailed("request.assigned")
    assert [mail.to for mail in mailoutbox] == [["tom@example.com"]]
    decide(request, gate.rita)
    assert now_of(request).status == RequestStatus.AUTHORIZED


def test_it_is_given_only_to_who_can_answer_it(gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    with pytest.raises(errors.InvalidInput):
        returns.assign_request(request_id=request.pk, person=gate.sue, to=gate.rita)
    with pytest.raises(errors.NotPermitted):
        returns.assign_request(request_id=request.pk, person=gate.rita, to=gate.sue)


def test_nobody_is_told_of_what_was_answered_meanwhile(
    gate: Gate, mailoutbox: Any
) -> None:
    request = propose(gate.agent).request
    returns.assign_request(request_id=request.pk, person=gate.sue, to=gate.tom)
    decide(request, gate.rita, "reject")
    mailed("request.assigned")
    assert mailoutbox == []


def split(gate: Gate) -> ApprovalRequest:
    """Approved by one and rejected by the other, on the same version."""
    request = propose(gate.agent, amount="899.00").request
    decide(request, gate.sue)
    return decide(request, gate.sam, "reject")


def test_arbitration_says_what_was_learnt_and_reopens_nothing(gate: Gate) -> None:
    request = split(gate)
    returns.record_arbitration(
        request_id=request.pk, person=gate.sue, text="Look at the date."
    )
    note = Note.objects.get()
    assert note.kind == NoteKind.ARBITRATION
    assert now_of(request).status == RequestStatus.REJECTED
    with pytest.raises(errors.Conflict):
        returns.record_arbitration(
            request_id=request.pk, person=gate.sam, text="Once more."
        )


def test_only_a_disagreement_is_arbitrated(gate: Gate) -> None:
    agreed = propose(gate.agent).request
    decide(agreed, gate.rita, "reject")
    with pytest.raises(errors.Conflict):
        returns.record_arbitration(
            request_id=agreed.pk, person=gate.sue, text="So what?"
        )
    request = split(gate)
    with pytest.raises(errors.ReasonMissing):
        returns.record_arbitration(request_id=request.pk, person=gate.sue, text=" ")
    with pytest.raises(errors.NotPermitted):
        returns.record_arbitration(
            request_id=request.pk, person=gate.rita, text="Mine."
        )


def test_looking_at_the_reviewers_view_is_on_record(gate: Gate) -> None:
    request = escalated(gate)
    returns.record_view_shown(request_id=request.pk, person=gate.sue)
    record = LogRecord.objects.get(kind="request.view_shown")
    assert (record.request, record.actor_id) == (request.pk, gate.sue.public_id)
    with pytest.raises(errors.NotPermitted):
        returns.record_view_shown(request_id=request.pk, person=gate.tom)
