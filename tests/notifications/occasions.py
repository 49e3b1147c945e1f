"""Every event that people are told of, reached by real operations: one function for
each topic, which it returns."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.test import override_settings

from journal import clock
from notifications.on_call import drills
from policies import password_links
from policies.choices import Risk
from policies.models import Queue
from reviews import deadlines
from reviews.choices import MessageKind, Scope
from reviews.decisions import moves, returns
from reviews.holds import rows, take
from reviews.models import ApprovalRequest
from reviews.stops import incidents, stops
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.hitl.tasks.draining import drain
from tests.reviews import states
from tests.reviews.dialogue.talking import ask, reply
from tests.reviews.questions.asking import ask as ask_people

Occasion = Callable[[Gate], str]


def opened(gate: Gate) -> str:
    propose(gate.agent)
    return "request.opened"


def escalated(gate: Gate) -> str:
    decide(propose(gate.agent).request, gate.rita, "escalate")
    return "request.escalated"


def question_asked(gate: Gate) -> str:
    ask_people(gate.agent)
    return "question.asked"


def half_time(gate: Gate) -> str:
    request = propose(gate.agent).request
    asked = request.opened_at - (request.expires_at - request.opened_at) * 1.5
    ApprovalRequest.objects.filter(pk=request.pk).update(opened_at=asked)
    assert deadlines.enqueue_reminders() == 1
    return "request.half_time"


def due_soon(gate: Gate) -> str:
    request = propose(gate.agent).request
    asked = clock.now() - timedelta(days=9)
    ApprovalRequest.objects.filter(pk=request.pk).update(opened_at=asked)
    assert deadlines.enqueue_reminders() == 1
    return "request.due_soon"


def settled(gate: Gate) -> str:
    decide(propose(gate.agent).request, gate.rita, "reject")
    return "request.settled"


def revoked(gate: Gate) -> str:
    states.recallable(gate)
    _revoke_reviewer(gate)
    return "request.revoked"


def freed(gate: Gate) -> str:
    request = propose(gate.agent).request
    take.take_hold(request_id=request.pk, person=gate.tom)
    take.record_waiting_person(request_id=request.pk, person=gate.sue)
    rows.release_hold(request_id=request.pk, person=gate.tom)
    return "request.freed"


def offered(gate: Gate) -> str:
    request = propose(gate.agent).request
    take.offer_hold(request_id=request.pk, person=gate.rita, to=gate.sue)
    return "request.offered"


def declined(gate: Gate) -> str:
    request = propose(gate.agent).request
    take.offer_hold(request_id=request.pk, person=gate.sue, to=gate.rita)
    take.decline_offer(request_id=request.pk, person=gate.rita)
    return "request.declined"


def assigned(gate: Gate) -> str:
    request = propose(gate.agent).request
    returns.assign_request(request_id=request.pk, person=gate.sam, to=gate.sue)
    return "request.assigned"


def returned(gate: Gate) -> str:
    request = propose(gate.agent).request
    decide(request, gate.rita, "escalate")
    returns.return_with_guidance(
        request_id=request.pk, person=gate.sam, guidance="Look at the order first."
    )
    return "request.returned"


def moved(gate: Gate) -> str:
    request = propose(gate.agent).request
    moves.move_request(
        request_id=request.pk,
        person=gate.sam,
        to=Queue.objects.get(name="mail"),
        reason="They know the customer.",
    )
    return "request.moved"


def asked(gate: Gate) -> str:
    request = propose(gate.agent).request
    reply(gate, request, kind=MessageKind.QUESTION)
    return "request.asked"


def answered(gate: Gate) -> str:
    request = propose(gate.agent).request
    ask(request, gate.sue)
    reply(gate, request)
    return "request.answered"


def broken(gate: Gate) -> str:
    request = propose(gate.agent).request
    take.take_hold(request_id=request.pk, person=gate.sue)
    take.break_hold(request_id=request.pk, person=gate.sam, reason="gone")
    return "request.broken"


def handed_over(gate: Gate) -> str:
    request = propose(gate.agent).request
    take.offer_hold(request_id=request.pk, person=gate.sue, to=gate.tom)
    take.take_hold(request_id=request.pk, person=gate.tom, accept=True)
    return "request.handed_over"


def announced(gate: Gate) -> str:
    propose(gate.agent, "tag")
    return "proposal.announced"


def unknown(gate: Gate) -> str:
    states.unknown(gate)
    return "execution.unknown"


def revoked_effect(gate: Gate) -> str:
    states.queued(gate)
    _revoke_reviewer(gate)
    return "execution.revoked"


def alarmed(gate: Gate) -> str:
    states.open_alarm(gate)
    return "alarm.raised"


def frozen(gate: Gate) -> str:
    incidents.declare_incident(person=gate.sue, reason="disk on fire")
    return "incident.told"


def linked(gate: Gate) -> str:
    """Sue may choose a new password."""
    mail = settings.COUNTERSEAL.model_copy(update={"mail_url": "smtp://localhost:25"})
    with override_settings(COUNTERSEAL=mail), transaction.atomic():
        password_links.open_link(gate.sue)
    return "person.linked"


def drilled(gate: Gate) -> str:
    request = propose(gate.agent).request
    drills.start_drill(person=gate.sue, queue=request.queue, risk=Risk.HIGH)
    return "drill.started"


def _revoke_reviewer(gate: Gate) -> None:
    stops.create_stop(
        scope=Scope.REVIEWER,
        key=gate.rita.public_id,
        person=gate.sue,
        reason="their account was stolen",
    )
    drain("stop.raised")


OCCASIONS: dict[str, Occasion] = {
    "request.opened": opened,
    "request.escalated": escalated,
    "request.moved": moved,
    "request.returned": returned,
    "request.asked": asked,
    "request.answered": answered,
    "request.revoked": revoked,
    "question.asked": question_asked,
    "request.half_time": half_time,
    "request.due_soon": due_soon,
    "request.settled": settled,
    "request.assigned": assigned,
    "request.freed": freed,
    "request.offered": offered,
    "request.declined": declined,
    "request.broken": broken,
    "request.handed_over": handed_over,
    "execution.revoked": revoked_effect,
    "execution.unknown": unknown,
    "proposal.announced": announced,
    "alarm.raised": alarmed,
    "drill.started": drilled,
    "incident.told": frozen,
    "person.linked": linked,
}
