from __future__ import annotations

import re

from django.core import mail
from guardian.shortcuts import remove_perm

from hitl import tasks
from journal.models import OutboxMessage
from notifications.events import NOTICE_TITLES
from policies.models import Queue
from reviews.holds import rows, take
from reviews.models import ApprovalRequest
from tests import factories
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.hitl.tasks.draining import drain, told

HOSTILE = "</pre>\u202eApprove now, https://evil.example/ <script>x()</script>"


def test_an_opened_request_is_mailed_to_those_who_may_decide(gate: Gate) -> None:
    propose(gate.agent, rationale=HOSTILE, thread="t-9")
    drain("request.opened")
    assert {m.to[0].partition("@")[0] for m in mail.outbox} == {
        "rita",
        "tom",
        "sue",
        "sam",
    }


def test_a_mail_holds_facts_and_a_link_and_nothing_of_the_agents(gate: Gate) -> None:
    propose(gate.agent, rationale=HOSTILE)
    drain("request.opened")
    text = f"{mail.outbox[0].subject} {mail.outbox[0].body}"
    assert "evil" not in text
    assert "\u202e" not in text
    request = ApprovalRequest.objects.get()
    links = re.findall(r"https?://\S+", text)
    assert links == [f"http://127.0.0.1:8000/requests/{request.pk}/"] or len(links) == 1


def test_what_a_rule_announces_elsewhere_is_told_there(gate: Gate) -> None:
    document = factories.document_of_tests()
    then = {"queue": "mail"}
    rule = {"id": "tag.mail", "text": "The mail team.", "tools": ["tag"], "then": then}
    document["rules"].append({**rule, "when": "true"})
    factories.policy(gate.people, document)
    remove_perm("decide", gate.sue, Queue.objects.get(name="mail"))
    remove_perm("decide", gate.sam, Queue.objects.get(name="odd"))
    execution = propose(gate.agent, "tag").executions.get()
    assert execution.announced_in == Queue.objects.get(name="mail")
    drain("proposal.announced")
    assert {who for who, _ in told()} == {"sam"}


def test_an_escalation_goes_to_supervisors_only(gate: Gate) -> None:
    decide(propose(gate.agent).request, gate.rita, "escalate")
    drain("request.escalated")
    assert {m.to[0].partition("@")[0] for m in mail.outbox} == {"sue", "sam"}


def test_a_message_handled_twice_mails_once(gate: Gate) -> None:
    propose(gate.agent)
    message = OutboxMessage.objects.get()
    tasks.notify_people(message.pk)
    tasks.notify_people(message.pk)
    assert len(mail.outbox) == 4


def test_a_settled_request_is_told(gate: Gate) -> None:
    decide(propose(gate.agent).request, gate.rita, "reject")
    drain("request.settled")
    assert "rejected" in mail.outbox[0].subject


def test_who_asked_hears_that_it_is_free_and_nobody_else(gate: Gate) -> None:
    request = propose(gate.agent).request
    take.take_hold(request_id=request.pk, person=gate.rita)
    take.record_waiting_person(request_id=request.pk, person=gate.tom)
    rows.release_hold(request_id=request.pk, person=gate.rita)
    drain("request.freed")
    assert told() == [("tom", NOTICE_TITLES["freed"])]


def test_nobody_is_called_to_what_is_decided(gate: Gate) -> None:
    request = propose(gate.agent).request
    take.take_hold(request_id=request.pk, person=gate.rita)
    take.record_waiting_person(request_id=request.pk, person=gate.tom)
    decide(request, gate.rita, "reject")
    drain("request.freed")
    assert told() == []


def test_an_offer_is_mailed_to_whom_it_is_made(gate: Gate) -> None:
    request = propose(gate.agent).request
    take.offer_hold(request_id=request.pk, person=gate.rita, to=gate.sue)
    drain("request.offered")
    assert told() == [("sue", NOTICE_TITLES["offered"])]
