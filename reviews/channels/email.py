"""Mail about requests and executions. A mail holds our own facts and a link; no agent
text, no button, nothing that decides by being opened or answered."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import cast

from django.conf import settings
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from guardian.shortcuts import get_users_with_perms

from policies.choices import Role
from policies.models import Person, Queue
from reviews import permissions
from reviews.models import ApprovalRequest, Execution, Revision
from reviews.presenters.shapes import Part
from reviews.queries import showing

PLAIN = re.compile(r"[A-Za-z0-9_-]{1,24}|-?[0-9][0-9.,]{0,20}")
LEFT_OUT = "[…]"


def deciders(queue: Queue, *, roles: Iterable[Role]) -> list[Person]:
    """Active people admitted to a queue who decide in one of these roles."""
    wanted = set(roles)
    admitted = cast(
        Iterable[Person], get_users_with_perms(queue, only_with_perms_in=["decide"])
    )
    return [
        person
        for person in admitted
        if person.email and permissions.deciding_role(person) in wanted
    ]


def about_request(
    request: ApprovalRequest, what: str, *, roles: Iterable[Role], only: str = ""
) -> int:
    """Tell those who may act on it, or `only` one of them by public id; how many mails
    were sent."""
    barred = set(request.proposal.barred)
    people = [
        p
        for p in deciders(request.queue, roles=roles)
        if p.public_id not in barred and only in {"", p.public_id}
    ]
    for person in people:
        to(person, request, what)
    return len(people)


def to(person: Person, request: ApprovalRequest, what: str) -> None:
    """One person's mail about one request."""
    facts = {"what": what, "rules": request.sealed.rules, **_facts(request)}
    subject = f"{what}: {request.proposal.tool_name}, {request.risk} ({request.pk})"
    _send([person], subject, "mail/request.txt", facts)


def digest(person: Person, requests: Sequence[ApprovalRequest]) -> None:
    """One mail about all that was gathered for this person."""
    facts: dict[str, object] = {"requests": [_facts(one) for one in requests]}
    count = len(requests)
    subject = f"{count} {'request waits' if count == 1 else 'requests wait'} for you"
    _send([person], subject, "mail/digest.txt", facts)


def test(person: Person) -> None:
    """That a mail arrives, and nothing else."""
    facts: dict[str, object] = {
        "link": f"{settings.HOLDPOINT.base_url}/me/notifications/"
    }
    _send([person], "A test, as you asked", "mail/test.txt", facts)


def _facts(request: ApprovalRequest) -> dict[str, object]:
    return {
        "request": request,
        "tool": request.proposal.tool_name,
        "effect": sentence(showing.effect(_revision(request))),
        "link": f"{settings.HOLDPOINT.base_url}/requests/{request.pk}/",
    }


def _revision(request: ApprovalRequest) -> Revision:
    revision = request.sealed.revision
    revision.proposal = request.proposal
    return revision


def sentence(parts: Iterable[Part]) -> str:
    """The effect in our own words, with such values as can say nothing else: names of
    one word and numbers. Anything else is read on the page: what is sensitive, what
    an agent wrote, and what a mail program would make a link of."""
    return "".join(part.text if _is_plain(part) else LEFT_OUT for part in parts)


def _is_plain(part: Part) -> bool:
    own = not part.value or not getattr(part, "untrusted", True)
    return own or bool(PLAIN.fullmatch(part.text))


def about_execution(execution: Execution, what: str, queue: Queue) -> int:
    """Tell the queue's supervisors about an effect that ran or may have run."""
    people = deciders(queue, roles=[Role.SUPERVISOR])
    proposal = execution.proposal
    run = f"/threads/{proposal.agent}/{proposal.thread}/"
    facts = {
        "what": what,
        "execution": execution,
        "tool": proposal.tool_name,
        "link": settings.HOLDPOINT.base_url + run,
    }
    subject = f"{what}: {proposal.tool_name} ({execution.pk})"
    return _send(people, subject, "mail/execution.txt", facts)


def _send(
    people: Iterable[Person], subject: str, template: str, facts: dict[str, object]
) -> int:
    body = render_to_string(template, facts)
    return sum(
        EmailMessage(subject=subject, body=body, to=[person.email]).send()
        for person in people
    )
