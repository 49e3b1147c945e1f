"""Mails about requests, executions, alarms and incidents. A mail holds our own facts
and a link. It contains no agent text and no button, and opening or answering it decides
nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.conf import settings
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from django.utils import timezone

from policies.models import Person
from reviews.alarms import wording
from reviews.effects import describe
from reviews.models import Alarm, ApprovalRequest, Execution, Incident, Revision
from reviews.presenters.shapes import SentencePart
from reviews.quorum import StepData

PLAIN_VALUE = re.compile(r"[A-Za-z0-9_-]{1,24}|-?[0-9][0-9.,]{0,20}")
LEFT_OUT = "[…]"


@dataclass(frozen=True, slots=True)
class MailLine:
    """One message about a request, an execution or an alarm."""

    what: str
    about: ApprovalRequest | Execution | Alarm
    waits: bool = False  # whether it waits for its reader's decision


def send_mail(person: Person, line: MailLine) -> None:
    """Send a person a mail about one subject."""
    facts = _build_facts(line)
    tool = facts["tool"]
    if isinstance(line.about, Alarm):
        subject = f"{line.what}: {facts['title']} ({line.about.pk})"
        _send_template(person, subject, "mail/alarm.txt", facts)
    elif isinstance(line.about, Execution):
        subject = f"{line.what}: {tool} ({line.about.pk})"
        _send_template(person, subject, "mail/execution.txt", facts)
    else:
        by = f", by {facts['deadline']}" if line.waits else ""
        subject = f"{line.what}: {tool}, {line.about.risk} risk{by} ({line.about.pk})"
        _send_template(person, subject, "mail/request.txt", facts)


@dataclass(frozen=True, slots=True)
class MailRemainder:
    """What a mail has no room for: the number of subjects, and how many wait."""

    count: int = 0
    waiting: int = 0


NO_REMAINDER = MailRemainder()


def send_digest_mail(
    person: Person, lines: Sequence[MailLine], rest: MailRemainder = NO_REMAINDER
) -> None:
    """Send a person one mail with all `lines`, and the number of the rest."""
    waiting = sum(line.waits for line in lines) + rest.waiting
    said = [_build_facts(line) for line in lines]
    facts = {
        "lines": said,
        "waiting": waiting,
        "first": _find_first_deadline(lines),
        "more": rest.count,
        "link": _build_link("/queue/"),
    }
    _send_template(
        person,
        _format_digest_subject(waiting, len(lines) + rest.count),
        "mail/digest.txt",
        facts,
    )


def _find_first_deadline(lines: Sequence[MailLine]) -> str:
    """The nearest deadline of the requests that wait; "" where none does."""
    deadlines = [
        line.about.expires_at
        for line in lines
        if line.waits and isinstance(line.about, ApprovalRequest)
    ]
    return _format_minute(min(deadlines)) if deadlines else ""


def _format_minute(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _format_digest_subject(waiting: int, count: int) -> str:
    if waiting < count:
        return "1 notification" if count == 1 else f"{count} notifications"
    needed = "request needs" if count == 1 else "requests need"
    return f"{count} {needed} your decision"


def send_test_mail(person: Person) -> None:
    """Send a mail whose only purpose is to show that mail arrives."""
    facts = {"link": _build_link("/me/notifications/")}
    _send_template(person, "Test email from Holdpoint", "mail/test.txt", facts)


def send_incident_mail(incident: str, *, person: str, kind: str) -> None:
    """Mail one supervisor that an incident paused deadlines, or that they resumed.
    `kind` is `declared` when they are paused."""
    row = Incident.objects.select_related("queue").get(pk=incident)
    where = row.queue.title if row.queue else "all queues"
    what = "Deadlines are paused" if kind == "declared" else "Deadlines resumed"
    facts = {"incident": row, "what": what, "where": where, "kind": kind}
    to = Person.objects.get(public_id=person)
    link = _build_link("/incidents/")
    _send_template(to, f"{what}: {where}", "mail/incident.txt", {**facts, "link": link})


def _build_facts(line: MailLine) -> dict[str, object]:
    """The values that a template may print: our own facts and a link."""
    about = line.about
    if isinstance(about, Alarm):
        return _build_alarm_facts(about, line.what)
    proposal = about.proposal
    facts: dict[str, object] = {"what": line.what, "tool": proposal.tool_name}
    if isinstance(about, Execution):
        run = f"/threads/{proposal.agent}/{proposal.thread}/"
        return {**facts, "execution": about, "link": _build_link(run)}
    return {
        **facts,
        "request": about,
        "waits": line.waits,
        "deadline": _format_minute(about.expires_at),
        "approvers": format_approvers(about.sealed.steps),
        "effect": format_plain_effect(
            describe.build_effect_sentence(_load_revision(about))
        ),
        "rules": about.sealed.rules,
        "link": _build_link(f"/requests/{about.pk}/"),
    }


def _build_alarm_facts(alarm: Alarm, what: str) -> dict[str, object]:
    said = wording.describe_alarm(alarm.kind)
    return {
        "what": what,
        "tool": alarm.proposal.tool_name if alarm.proposal else "",
        "alarm": alarm,
        "title": said.title,
        "means": said.means,
        "do": said.do,
        "link": _build_link(f"/alarms/{alarm.pk}/"),
    }


def _build_link(path: str) -> str:
    return f"{settings.HOLDPOINT.base_url}{path}"


def format_approvers(steps: Iterable[StepData]) -> str:
    """The people who must approve: `1 reviewer and 2 supervisors`."""
    return " and ".join(
        f"{step['required']} {step['role']}{'' if step['required'] == 1 else 's'}"
        for step in steps
    )


def _load_revision(request: ApprovalRequest) -> Revision:
    revision = request.sealed.revision
    revision.proposal = request.proposal
    return revision


def format_plain_effect(parts: Iterable[SentencePart]) -> str:
    """The effect in our own words. Of the arguments, only numbers and one-word names
    are printed. The rest can be read only on the page: sensitive values, text of an
    agent, and anything that a mail program would turn into a link."""
    return "".join(part.text if _is_plain(part) else LEFT_OUT for part in parts)


def _is_plain(part: SentencePart) -> bool:
    own = not part.value or not getattr(part, "untrusted", True)
    return own or bool(PLAIN_VALUE.fullmatch(part.text))


def _send_template(
    person: Person, subject: str, template: str, facts: Mapping[str, object]
) -> None:
    with timezone.override(UTC):
        body = render_to_string(template, dict(facts))
    EmailMessage(subject=subject, body=body, to=[person.email]).send()
