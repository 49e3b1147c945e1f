"""A value that the schema marks sensitive, shown to one person once, with a reason. The
log says that it was seen and never what it is (gate.md 4)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from django.db import transaction

from journal import clock, log
from journal.errors import NotFound, Reason
from policies import tools
from policies.models import Person
from reviews import permissions, transitions
from reviews.choices import RevealReason
from reviews.models import ApprovalRequest, RequestVersion
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
