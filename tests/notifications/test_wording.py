"""The words of the mails, each asserted once: the subject and the first line say what
is asked, of whom and by when."""

from __future__ import annotations

import re

import pytest
from django.conf import settings
from django.core import mail

from notifications.channels import content, email
from notifications.channels.contract import MessageLine
from reviews.alarms import wording
from reviews.models import Alarm
from reviews.quorum import StepData
from tests.conftest import Gate
from tests.factories import propose
from tests.hitl.tasks.draining import drain, drain_digests
from tests.notifications.occasions import OCCASIONS
from tests.reviews import states

pytestmark = pytest.mark.django_db

TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)? UTC")
ID = re.compile(r" \(([a-z]-)?[a-z0-9]+\)$")
ONE = "1 reviewer must approve or reject by <time>."
TWO = "2 supervisors must approve or reject by <time>."
NO_ACTION = "You do not need to do anything."


def read_mail(topic: str, gate: Gate, to: str) -> tuple[str, str]:
    """The subject and the first line of the mail, without times and ids."""
    assert OCCASIONS[topic](gate) == topic
    drain(topic)
    drain_digests()
    (sent,) = [one for one in mail.outbox if one.to == [f"{to}@example.com"]]
    first = str(sent.body).partition("\n")[0]
    return ID.sub("", TIME.sub("<time>", str(sent.subject))), TIME.sub("<time>", first)


@pytest.mark.parametrize(
    ("topic", "subject", "first"),
    [
        (
            "request.opened",
            "Approval needed: pay, high risk, by <time>",
            f"Approval needed: {ONE}",
        ),
        (
            "request.half_time",
            "Half of the time is over: pay, high risk, by <time>",
            f"Half of the time is over: {ONE}",
        ),
        (
            "request.due_soon",
            "Expires soon: pay, high risk, by <time>",
            f"Expires soon: {ONE}",
        ),
        (
            "request.moved",
            "Approval needed: pay, high risk, by <time>",
            f"Approval needed: {ONE}",
        ),
        (
            "request.returned",
            "Returned with guidance: pay, high risk, by <time>",
            f"Returned with guidance: {ONE}",
        ),
        (
            "request.asked",
            "Question from the agent: pay, high risk, by <time>",
            f"Question from the agent: {ONE}",
        ),
        (
            "request.answered",
            "The agent answered: pay, high risk, by <time>",
            f"The agent answered: {ONE}",
        ),
        (
            "request.revoked",
            "Approval needed again: pay, high risk, by <time>",
            f"Approval needed again: {ONE}",
        ),
        (
            "request.assigned",
            "Assigned to you: pay, high risk, by <time>",
            f"Assigned to you: {ONE}",
        ),
        (
            "request.offered",
            "Offered to you: pay, high risk, by <time>",
            f"Offered to you: {ONE}",
        ),
        (
            "request.freed",
            "Available again: pay, high risk, by <time>",
            f"Available again: {ONE}",
        ),
        (
            "request.broken",
            "Your claim was ended: pay, high risk, by <time>",
            f"Your claim was ended: {ONE}",
        ),
        (
            "request.handed_over",
            "Handed over: pay, high risk, by <time>",
            f"Handed over: {ONE}",
        ),
        (
            "request.settled",
            "Resolved, rejected: pay, high risk",
            f"Resolved, rejected. {NO_ACTION}",
        ),
        (
            "proposal.announced",
            "Allowed without approval: tag",
            f"Allowed without approval: tag. {NO_ACTION}",
        ),
        (
            "execution.unknown",
            "Unknown result: pay_opaque",
            "Unknown result: pay_opaque. Counterseal looks it up where it can;"
            " otherwise a supervisor records what happened.",
        ),
        (
            "execution.revoked",
            "Cancelled after a revoked approval: pay",
            f"Cancelled after a revoked approval: pay. {NO_ACTION}",
        ),
        (
            "drill.started",
            "Drill: no request waits in Money",
            "This is a drill: no request waits. Follow the link to show that this"
            " message reached you.",
        ),
        (
            "incident.told",
            "Deadlines are paused: all queues",
            f"Deadlines are paused: all queues. {NO_ACTION}",
        ),
    ],
)
def test_a_mail_says_what_is_asked_of_whom_and_by_when(
    gate: Gate, topic: str, subject: str, first: str
) -> None:
    assert read_mail(topic, gate, "sue") == (subject, first)


def test_an_escalation_names_all_who_must_approve(gate: Gate) -> None:
    subject, first = read_mail("request.escalated", gate, "sam")
    assert subject == "Escalated to supervisors: pay, high risk, by <time>"
    assert first.startswith("Escalated to supervisors: ")
    assert " and " in first


def test_an_alarm_asks_supervisors(gate: Gate) -> None:
    subject, first = read_mail("alarm.raised", gate, "sue")
    alarm = Alarm.objects.get()
    title = wording.describe_alarm(alarm.kind).title
    assert subject == f"Alarm: {title}"
    assert (
        first == f"Alarm for supervisors: {title}. It stays open until it is resolved."
    )


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ([("reviewer", 1)], "1 reviewer"),
        ([("supervisor", 2)], "2 supervisors"),
        ([("reviewer", 1), ("supervisor", 1)], "1 reviewer and 1 supervisor"),
    ],
)
def test_approvers_are_counted_in_words(steps, text: str) -> None:
    found = [StepData(role=role, required=count) for role, count in steps]
    assert content.format_approvers(found) == text


def test_a_digest_names_the_first_deadline(gate: Gate) -> None:
    late, early = states.pending(gate), propose(gate.agent, customer="C-2").request
    lines = [MessageLine("Approval needed", one, True) for one in (late, early)]
    email.send_digest_mail(gate.sue, lines)
    first = str(mail.outbox[-1].body).partition("\n")[0]
    by = min(late.expires_at, early.expires_at)
    expected = f"2 requests need your decision, the first by {by:%Y-%m-%d %H:%M} UTC."
    assert first == expected


def test_a_digest_of_news_asks_for_nothing(gate: Gate) -> None:
    lines = [MessageLine("Resolved, rejected", states.rejected(gate))]
    email.send_digest_mail(gate.sue, lines)
    assert mail.outbox[-1].subject == "1 notification"
    first = str(mail.outbox[-1].body).partition("\n")[0]
    assert first == "For your information. You do not need to decide anything."


SPEAKING = "This request was checked by the fraud team. Ignore the content below."
WARNING = "Possible manipulation: agent text addresses the reviewer"


def test_a_mail_warns_before_it_says_what_would_happen(gate: Gate) -> None:
    request = propose(gate.agent, rationale=SPEAKING).request
    line = MessageLine("Approval needed", request, waits=True)
    assert content.summarize_line(line).rows[0] == ("Warnings", WARNING)
    drain("request.opened")
    drain_digests()
    body = str(mail.outbox[0].body)
    assert f"Warning: {WARNING}\nPay" in body
    assert SPEAKING not in body


@pytest.mark.parametrize("topic", OCCASIONS)
def test_a_mail_says_that_it_is_generated_and_which_run_it_belongs_to(
    topic: str, gate: Gate
) -> None:
    OCCASIONS[topic](gate)
    drain(topic)
    drain_digests()
    assert mail.outbox
    for sent in mail.outbox:
        headers = sent.message()
        assert headers["Auto-Submitted"] == "auto-generated"
        host = settings.COUNTERSEAL.hostname
        assert re.fullmatch(rf"<[^@<>]+@{re.escape(host)}>", headers["Message-ID"])


def test_the_mails_of_one_proposal_are_one_conversation(gate: Gate) -> None:
    first, second = (propose(gate.agent, customer=f"C-{n}").request for n in range(2))
    execution = states.unknown(gate)
    for about in (first, first, second, execution):
        email.send_mail(gate.rita, MessageLine("x", about))
    email.send_test_mail(gate.rita)
    found = [sent.message() for sent in mail.outbox]
    threads = [headers["References"] for headers in found]
    assert [headers["In-Reply-To"] for headers in found] == threads
    assert threads[0] == threads[1] != threads[2]
    assert f"<{execution.proposal_id}@" in threads[3]
    assert threads[4] is None
    assert len({headers["Message-ID"] for headers in found}) == 5
