from __future__ import annotations

from typing import Any

import pytest
from guardian.shortcuts import assign_perm, remove_perm

from hitl import tasks
from journal import clock, errors
from journal.models import LogRecord, OutboxMessage
from policies.choices import Role
from policies.models import Person, Queue
from reviews.choices import NoteKind, RequestStatus
from reviews.decisions import moves, returns
from reviews.executions import run
from reviews.holds import take
from reviews.models import ApprovalRequest, Decision, Hold, Note
from reviews.stops import incidents
from tests import factories
from tests.conftest import Gate
from tests.factories import decide, propose

WHY = "Mail answers for this customer."


def queue(name: str = "mail") -> Queue:
    return Queue.objects.get(name=name)


def leave(person: Person, name: str) -> None:
    remove_perm("policies.decide", person, queue(name))


def move(
    request: ApprovalRequest, person: Person, to: str = "mail", reason: str = WHY
) -> ApprovalRequest:
    return moves.move_request(
        request_id=request.pk,
        person=Person.objects.get(pk=person.pk),
        to=queue(to),
        reason=reason,
    )


def now_of(request: ApprovalRequest) -> ApprovalRequest:
    return ApprovalRequest.objects.select_related("queue").get(pk=request.pk)


def test_a_move_changes_the_queue_and_nothing_that_is_asked(gate: Gate) -> None:
    request = propose(gate.agent).request
    before = now_of(request)
    move(request, gate.sue)
    found = now_of(request)
    assert (found.queue.name, found.status, found.version) == ("mail", "pending", 2)
    assert found.expires_at == before.expires_at
    assert (found.tier, found.action_hash) == (before.tier, before.action_hash)
    assert found.sealed.cause == "moved"
    assert found.sealed.queue_id == queue().pk
    for name in ("steps", "requires_reason", "step_up", "recall_seconds", "rules"):
        assert getattr(found.sealed, name) == getattr(before.sealed, name)


def test_the_move_is_logged_and_its_reason_is_a_note(gate: Gate) -> None:
    request = propose(gate.agent).request
    move(request, gate.sue, reason=f"  {WHY} ")
    note = Note.objects.get()
    assert (note.kind, note.text, note.author) == (NoteKind.MOVE, WHY, gate.sue)
    record = LogRecord.objects.get(kind="request.moved")
    assert (record.actor_id, record.request) == (gate.sue.public_id, request.pk)
    assert {"from": "money", "queue": "mail"}.items() <= record.data.items()
    leaves = [bytes(one.leaf) for one in LogRecord.objects.all()]
    assert not any(WHY.encode() in leaf for leaf in leaves)


def test_people_of_the_other_queue_decide_it_and_it_runs(gate: Gate) -> None:
    for person in (gate.rita, gate.tom):
        leave(person, "money" if person == gate.rita else "mail")
    request = propose(gate.agent).request
    move(request, gate.sue)
    with pytest.raises(errors.NotPermitted, match="not admitted to this queue"):
        decide(request, gate.tom)
    decide(request, gate.rita)
    execution = request.proposal.executions.get()
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("succeeded", "")


def test_it_runs_under_a_policy_that_changed_its_steps_since(gate: Gate) -> None:
    """The re-check asks for people of the queue to which it was moved."""
    leave(gate.rita, "money")
    request = propose(gate.agent).request
    move(request, gate.sue)
    decide(request, gate.rita)
    document = factories.document_of_tests()
    document["steps"]["approve"] = [{"role": "reviewer", "required": 1}]
    document["rules"] = [
        *document.get("rules", []),
        {
            "id": "prove",
            "text": "Everybody proves who they are.",
            "tools": ["pay"],
            "when": "true",
            "then": {"step_up": True},
        },
    ]
    factories.policy(gate.people, document)
    execution = request.proposal.executions.get()
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("succeeded", "")


@pytest.mark.parametrize("name", ["rita", "tom", "adam", "otto", "owen"])
def test_only_a_supervisor_moves(gate: Gate, name: str) -> None:
    request = propose(gate.agent).request
    with pytest.raises(errors.NotPermitted):
        move(request, gate.people[name])
    assert now_of(request).queue.name == "money"


def test_a_supervisor_of_another_queue_does_not_move_it(gate: Gate) -> None:
    request = propose(gate.agent).request
    leave(gate.sue, "money")
    with pytest.raises(errors.NotPermitted, match="not admitted to this queue"):
        move(request, gate.sue)
    assert (now_of(request).queue.name, now_of(request).version) == ("money", 1)


def test_whom_it_concerns_does_not_move_it(gate: Gate) -> None:
    behalf = {"kind": "user", "id": gate.sue.email}
    request = propose(gate.agent, on_behalf_of=behalf).request
    with pytest.raises(errors.NotPermitted, match="do that"):
        move(request, gate.sue)


@pytest.mark.parametrize("reason", ["", " \n ", "x" * 2001])
def test_a_move_needs_a_reason_of_some_length(gate: Gate, reason: str) -> None:
    request = propose(gate.agent).request
    with pytest.raises(errors.ReasonMissing) as refused:
        move(request, gate.sue, reason=reason)
    assert refused.value.errors[0]["path"] == "reason"
    assert now_of(request).version == 1


def test_it_is_not_moved_to_where_it_is(gate: Gate) -> None:
    request = propose(gate.agent).request
    with pytest.raises(errors.Conflict, match="in Money already"):
        move(request, gate.sue, "money")


def test_what_is_over_is_not_moved(gate: Gate) -> None:
    done = propose(gate.agent).request
    decide(done, gate.rita, "reject")
    with pytest.raises(errors.AlreadyDecided):
        move(done, gate.sue)
    late = propose(gate.agent, customer="C-2").request
    factories.overdue(late)
    with pytest.raises(errors.RequestExpired):
        move(late, gate.sue)
    assert not LogRecord.objects.filter(kind="request.moved").exists()


def test_a_queue_in_which_nobody_could_decide_it_is_refused(gate: Gate) -> None:
    Queue.objects.create(name="empty", title="Empty")
    request = propose(gate.agent).request
    with pytest.raises(errors.PolicyViolation) as refused:
        move(request, gate.sue, "empty")
    (problem,) = refused.value.errors
    assert problem["path"] == "queue"
    assert "0 of 1 people of Empty could decide it" in problem["message"]
    assert now_of(request).queue.name == "money"


def test_a_queue_of_low_ceilings_or_without_supervisors_is_refused(gate: Gate) -> None:
    small = Queue.objects.create(name="small", title="Small")
    poor = factories.person(
        "pia", Role.REVIEWER, ceiling_minor=100, ceiling_currency="USD"
    )
    assign_perm("policies.decide", poor, small)
    request = propose(gate.agent).request
    with pytest.raises(errors.PolicyViolation, match="Nothing was moved"):
        move(request, gate.sue, "small")
    assign_perm("policies.decide", gate.rita, small)
    move(request, gate.sue, "small")
    escalated = propose(gate.agent, amount="899.00", customer="C-2").request
    with pytest.raises(errors.PolicyViolation) as refused:
        move(escalated, gate.sue, "small")
    assert "0 of 2 supervisors" in refused.value.errors[0]["message"]


def test_who_escalated_it_does_not_count_in_the_other_queue(gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    own = Queue.objects.create(name="own", title="Own")
    for person in (gate.sam, gate.sue):
        assign_perm("policies.decide", person, own)
    third = factories.admitted("sol", Role.SUPERVISOR)
    factories.admitted("sid", Role.SUPERVISOR)
    leave(third, "own")
    decide(request, gate.sam, "escalate", reason_code="unsafe")
    with pytest.raises(errors.PolicyViolation):
        move(request, gate.sue, "own")


def test_a_vote_of_who_serves_both_queues_stays(gate: Gate) -> None:
    document = factories.document_of_tests()
    document["steps"]["approve"] = [
        {"role": "reviewer", "required": 1},
        {"role": "supervisor", "required": 1},
    ]
    factories.policy(gate.people, document)
    request = propose(gate.agent).request
    decide(request, gate.tom)
    move(request, gate.sue)
    found = now_of(request).sealed
    assert found.steps == [{"role": "supervisor", "required": 1}]
    assert found.carried == [gate.tom.public_id]
    with pytest.raises(errors.NotPermitted, match="already decided"):
        decide(request, gate.tom)
    decide(request, gate.sam)
    assert now_of(request).status == RequestStatus.AUTHORIZED


def test_a_vote_of_who_stays_behind_is_void(gate: Gate) -> None:
    document = factories.document_of_tests()
    document["steps"]["approve"] = [
        {"role": "reviewer", "required": 1},
        {"role": "supervisor", "required": 1},
    ]
    factories.policy(gate.people, document)
    leave(gate.tom, "mail")
    request = propose(gate.agent).request
    decide(request, gate.tom)
    move(request, gate.sue)
    found = now_of(request).sealed
    assert [step["role"] for step in found.steps] == ["reviewer", "supervisor"]
    assert found.carried == []
    decide(request, gate.sam)
    assert now_of(request).status == RequestStatus.PENDING
    decide(request, gate.rita)
    assert now_of(request).status == RequestStatus.AUTHORIZED
    assert Decision.objects.filter(request=request, counts=True).count() == 3


def test_a_carried_vote_of_who_stays_behind_is_asked_again(gate: Gate) -> None:
    document = factories.document_of_tests()
    document["steps"]["approve"] = [
        {"role": "reviewer", "required": 1},
        {"role": "supervisor", "required": 1},
    ]
    factories.policy(gate.people, document)
    leave(gate.tom, "odd")
    request = propose(gate.agent).request
    decide(request, gate.tom)
    move(request, gate.sue)
    move(request, gate.sue, "odd")
    found = now_of(request).sealed
    assert sorted(step["role"] for step in found.steps) == ["reviewer", "supervisor"]
    assert found.carried == []


def test_a_claim_of_who_stays_behind_ends(gate: Gate) -> None:
    leave(gate.tom, "mail")
    request = propose(gate.agent).request
    take.take_hold(request_id=request.pk, person=gate.tom)
    take.record_waiting_person(request_id=request.pk, person=gate.rita)
    move(request, gate.sue)
    assert Hold.objects.get(pk=request.pk).holder is None
    record = LogRecord.objects.get(kind="hold.released")
    assert record.data["cause"] == "moved"
    decide(request, gate.rita)


def test_a_claim_of_who_serves_both_stays_without_its_offer(gate: Gate) -> None:
    leave(gate.tom, "mail")
    request = propose(gate.agent).request
    take.take_hold(request_id=request.pk, person=gate.rita)
    take.offer_hold(request_id=request.pk, person=gate.rita, to=gate.tom)
    move(request, gate.sue)
    hold = Hold.objects.get(pk=request.pk)
    assert (hold.holder, hold.offered_to) == (gate.rita, None)
    assert LogRecord.objects.filter(kind="hold.offer_withdrawn").count() == 1


def test_an_assignment_to_who_stays_behind_ends(gate: Gate) -> None:
    leave(gate.tom, "mail")
    request = propose(gate.agent).request
    returns.assign_request(request_id=request.pk, person=gate.sue, to=gate.tom)
    move(request, gate.sue)
    assert now_of(request).assignee is None
    returns.assign_request(request_id=request.pk, person=gate.sue, to=gate.rita)
    move(request, gate.sue, "odd")
    assert now_of(request).assignee == gate.rita


def test_the_people_of_the_other_queue_are_told(gate: Gate, mailoutbox: Any) -> None:
    leave(gate.tom, "mail")
    leave(gate.rita, "money")
    request = propose(gate.agent).request
    move(request, gate.sue)
    tasks.notify_people(OutboxMessage.objects.get(topic="request.moved").pk)
    told = {address for mail in mailoutbox for address in mail.to}
    assert "rita@example.com" in told
    assert "tom@example.com" not in told
    assert all(WHY not in mail.body for mail in mailoutbox)


def test_an_escalation_afterwards_asks_a_supervisor_of_the_other_queue(
    gate: Gate,
) -> None:
    leave(gate.sam, "money")
    leave(gate.sue, "mail")
    factories.admitted("sol", Role.SUPERVISOR)
    request = propose(gate.agent).request
    move(request, gate.sue)
    decide(request, gate.rita, "escalate", reason_code="unsafe")
    with pytest.raises(errors.NotPermitted):
        decide(request, gate.sue)
    decide(request, gate.sam)
    assert now_of(request).queue.name == "mail"


def test_a_revision_stays_where_it_was_moved(gate: Gate) -> None:
    request = propose(gate.agent).request
    move(request, gate.sue)
    factories.revise(gate.agent, request.proposal)
    assert now_of(request).queue.name == "mail"
    assert now_of(request).sealed.queue_id == queue().pk


def test_a_revision_goes_where_the_policy_sends_it_anew(gate: Gate) -> None:
    document = factories.document_of_tests()
    document["rules"] = [
        *document.get("rules", []),
        {
            "id": "elsewhere",
            "text": "Customer C-9 is odd.",
            "tools": ["pay"],
            "when": "args.customer == 'C-9'",
            "then": {"queue": "odd"},
        },
    ]
    factories.policy(gate.people, document)
    request = propose(gate.agent).request
    move(request, gate.sue)
    factories.revise(gate.agent, request.proposal, customer="C-9")
    assert now_of(request).queue.name == "odd"


def test_time_stands_still_only_under_an_incident_of_its_queue(gate: Gate) -> None:
    request = propose(gate.agent).request
    left = request.expires_at - clock.now()
    incidents.declare_incident(person=gate.sue, reason="Fire.", queue=queue())
    move(request, gate.sue)
    frozen = now_of(request)
    assert frozen.frozen_through is not None
    assert frozen.expires_at - frozen.frozen_through <= left
    move(request, gate.sue, "money")
    assert now_of(request).frozen_through is None
    assert abs(now_of(request).expires_at - request.expires_at).total_seconds() < 60
