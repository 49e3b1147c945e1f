"""A value that the schema marks sensitive, shown to one person once, with a reason. The
log says that it was seen and never what it is (gate.md 4).

That people have seen what was announced to them, and what nearly went wrong. It
changes nothing that ran; near misses say which class of effects to look at.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from journal import clock, log
from journal.errors import NotFound, Reason
from policies import tools
from policies.models import Person
from reviews import permissions, transitions
from reviews.choices import RevealReason
from reviews.models import ApprovalRequest, Execution, RequestVersion, Sighting
from reviews.permissions import Permission
from reviews.presenters.arguments import Leaf, cell, leaves
from reviews.presenters.arguments import label as arguments_label

_STEP = re.compile(r"\[[^\]]*\]")


@dataclass(frozen=True, slots=True)
class Hidden:
    """One argument that the page shows as a chip."""

    name: str  # as the tool declares it
    label: str


@dataclass(frozen=True, slots=True)
class Value:
    """One revealed leaf: untrusted text."""

    label: str
    text: str


def hidden(version: RequestVersion) -> list[Hidden]:
    """The sensitive arguments that are given, in the schema's words."""
    tool = version.revision.tool
    if tool is None:
        return []
    definition = tools.definition(tool)
    return [
        Hidden(name, arguments_label(name, definition.labels))
        for name in definition.sensitive
        if _under(version, name)
    ]


@transaction.atomic(durable=True)
def reveal(
    *, request_id: str, person: Person, name: str, reason_code: str, reason: str
) -> list[Value]:
    """The values under one sensitive argument; the record is durable before they are.

    Raises NotYours, NotFound for an argument that is not hidden, Reason.
    """
    permissions.check(person, Permission.REVEAL)
    if reason_code not in set(RevealReason):
        raise Reason("Choose why you need to see it. Nothing was revealed.")
    if reason_code == RevealReason.OTHER and not reason.strip():
        raise Reason("Say why you need to see it. Nothing was revealed.")
    request = ApprovalRequest.objects.select_related("proposal").get(pk=request_id)
    version = request.sealed
    definition = tools.definition(version.revision.known_tool)
    if name not in definition.sensitive:
        raise NotFound
    found = _under(version, name)
    log.append(
        "value.revealed",
        actor=log.Actor("person", person.public_id),
        at=clock.now(),
        data={"argument": name, "reason_code": reason_code},
        private={"reason": reason},
        **transitions.request.context(request),
    )
    return [
        Value(arguments_label(leaf.path, definition.labels), cell(leaf.value).text)
        for leaf in found
    ]


def _under(version: RequestVersion, name: str) -> list[Leaf]:
    """The leaves of one argument, whatever their places in lists."""
    plain = ((leaf, _STEP.sub("", leaf.path)) for leaf in leaves(version.revision.args))
    return [leaf for leaf, path in plain if f"{path}.".startswith(f"{name}.")]


MOST = 200  # in one call


@transaction.atomic(durable=True)
def see(
    *, person: Person, executions: Collection[Execution], near_miss: bool = False
) -> int:
    """Mark announced effects as seen, or one as a near miss; how many are new.

    Who asks has checked that they are this person's to see.
    """
    now = clock.now()
    found = Sighting.objects.filter(person=person, execution__in=executions)
    before = dict(found.values_list("execution_id", "near_miss"))
    new = [x for x in executions if before.get(x.pk) in _LESS[near_miss]][:MOST]
    Sighting.objects.bulk_create(
        [
            Sighting(person=person, execution=x, near_miss=near_miss, at=now)
            for x in new
        ],
        update_conflicts=True,
        unique_fields=["person", "execution"],
        update_fields=["near_miss"],
    )
    log.append_many(_entry(person, x, near_miss, now) for x in new)
    return len(new)


# What an answer adds to: nothing said, or said less. A near miss stays one.
_LESS: dict[bool, tuple[bool | None, ...]] = {False: (None,), True: (None, False)}


def _entry(
    person: Person, execution: Execution, near_miss: bool, now: datetime
) -> log.Entry:
    proposal = execution.proposal
    return log.Entry(
        "announced.near_miss" if near_miss else "announced.seen",
        actor=log.Actor("person", person.public_id),
        at=now,
        proposal=proposal.pk,
        agent=proposal.agent,
        thread=proposal.thread,
        data={"execution": execution.pk},
    )
