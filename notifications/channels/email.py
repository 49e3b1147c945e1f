"""Mails about requests, executions, alarms and incidents. A mail holds our own facts
and a link. It contains no agent text and no button, and opening or answering it decides
nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from email.utils import make_msgid

from django.conf import settings
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from policies import password_links
from policies.models import Person
from reviews.models import Alarm, Execution, Incident, NotificationDrill, Question

from . import content
from .contract import (
    NO_REMAINDER,
    Channel,
    ChannelMessage,
    MessageLine,
    MessageRemainder,
)


class EmailChannel(Channel):
    """Mail to one person. The message's id is its Message-ID header."""

    name = "email"
    title = "Mail"
    variables = ("MAIL_URL",)
    is_personal = True

    def is_configured(self) -> bool:
        # Without a mail server, mails are written to files.
        return True

    def find_address(self, person: Person) -> str:
        return person.email

    def dispatch(self, message: ChannelMessage) -> str:
        assert message.person is not None  # it is a personal channel
        if message.is_test:
            return send_test_mail(message.person)
        if message.is_digest:
            return send_digest_mail(message.person, message.lines, message.rest)
        (line,) = message.lines
        return send_mail(message.person, line)


CHANNEL = EmailChannel()
TEMPLATES: dict[type[object], str] = {
    Alarm: "mail/alarm.txt",
    Execution: "mail/execution.txt",
    NotificationDrill: "mail/drill.txt",
    Question: "mail/question.txt",
}


def send_mail(person: Person, line: MessageLine) -> str:
    """Send a person a mail about one subject. Returns its Message-ID."""
    facts = content.build_facts(line)
    subject = f"{content.format_subject(line)} ({line.about.pk})"
    template = TEMPLATES.get(type(line.about), "mail/request.txt")
    proposal = getattr(line.about, "proposal_id", None) or ""
    return _send_template(person, subject, template, facts, proposal=proposal)


def send_digest_mail(
    person: Person, lines: Sequence[MessageLine], rest: MessageRemainder = NO_REMAINDER
) -> str:
    """Send a person one mail with all `lines`, and the number of the rest. Returns its
    Message-ID."""
    facts = {
        "lines": [content.build_facts(line) for line in lines],
        "waiting": content.count_waiting(lines, rest),
        "first": content.find_first_deadline(lines),
        "more": rest.count,
        "link": content.build_link("/queue/"),
    }
    subject = content.format_digest_subject(lines, rest)
    return _send_template(person, subject, "mail/digest.txt", facts)


def send_test_mail(person: Person) -> str:
    """Send a mail whose only purpose is to show that mail arrives. Returns its
    Message-ID."""
    facts = {"link": content.build_link("/me/notifications/")}
    return _send_template(person, content.TEST_SUBJECT, "mail/test.txt", facts)


def send_link_mail(who: str) -> None:
    """Mail a person the link by which they choose a password; nothing once they have
    used it. `who` is their public id. The link is made here, so that no table holds
    it."""
    person = Person.objects.get(public_id=who)
    if not password_links.is_awaited(person):
        return
    path = reverse("reviews:password_link", args=[password_links.create_token(person)])
    facts = {"person": person, "days": password_links.LINK_AGE.days}
    facts["link"] = content.build_link(path)
    _send_template(person, "Choose your password", "mail/password_link.txt", facts)


def send_incident_mail(incident: str, *, person: str, kind: str) -> None:
    """Mail one supervisor that an incident paused deadlines, or that they resumed.
    `kind` is `declared` when they are paused."""
    row = Incident.objects.select_related("queue").get(pk=incident)
    where = row.queue.title if row.queue else "all queues"
    what = "Deadlines are paused" if kind == "declared" else "Deadlines resumed"
    facts = {"incident": row, "what": what, "where": where, "kind": kind}
    to = Person.objects.get(public_id=person)
    link = content.build_link("/incidents/")
    _send_template(to, f"{what}: {where}", "mail/incident.txt", {**facts, "link": link})


def _send_template(
    person: Person,
    subject: str,
    template: str,
    facts: Mapping[str, object],
    *,
    proposal: str = "",
) -> str:
    """Send the mail and return its Message-ID. Mails about one proposal refer to one
    message that nobody sends, so that a mail program shows them together. No program
    answers a mail that says it is generated (RFC 3834)."""
    with timezone.override(UTC):
        body = render_to_string(template, dict(facts))
    host = settings.COUNTERSEAL.hostname
    headers = {
        "Message-ID": make_msgid(domain=host),
        "Auto-Submitted": "auto-generated",
    }
    if proposal:
        headers |= dict.fromkeys(("In-Reply-To", "References"), f"<{proposal}@{host}>")
    EmailMessage(subject=subject, body=body, to=[person.email], headers=headers).send()
    return headers["Message-ID"]
