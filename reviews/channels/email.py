"""Mail about requests and executions. A mail holds our own facts and a link; no agent
text, no button, nothing that decides by being opened or answered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from django.conf import settings
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from guardian.shortcuts import get_users_with_perms

from policies.choices import Role
from policies.models import Person, Queue
from reviews import permissions
from reviews.models import ApprovalRequest, Execution


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
    version = request.sealed
    facts = {
        "what": what,
        "request": request,
        "tool": request.proposal.tool_name,
        "rules": version.rules,
        "link": f"{settings.HOLDPOINT.base_url}/requests/{request.pk}/",
    }
    subject = f"{what}: {request.proposal.tool_name}, {request.risk} ({request.pk})"
    return _send(people, subject, "mail/request.txt", facts)


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
