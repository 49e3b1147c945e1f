"""Chooses the channels of a notice: by the routing table of the active policy, and by
where each person can be reached."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from policies import active
from policies.documents import Place, RoutedMessage, select_places
from policies.models import Person
from reviews.models import (
    Alarm,
    ApprovalRequest,
    Execution,
    Notice,
    NotificationDrill,
    Question,
)
from reviews.models.people import SUBJECTS

from . import registry

USUAL_CHANNEL = "email"
# Where no row of the table holds. A person has chosen push by registering a browser.
DEFAULT_PLACES = (Place(USUAL_CHANNEL, ""), Place("push", ""))


def route_notice(about: Mapping[str, Any], kind: str) -> list[Place]:
    """The channels of a notice about a request, an execution, an alarm, a drill or a
    question (`about`, as the fields of `Notice`)."""
    version = active.find_active_policy()
    routes = active.load_document(version).routes if version else []
    if routes:
        subject = next((about[name] for name in SUBJECTS if about.get(name)), None)
        places = select_places(routes, _build_routed_message(subject, kind))
        if places is not None:
            return places
    known = registry.load_channels()
    return [place for place in DEFAULT_PLACES if place.channel in known]


def _build_routed_message(
    subject: ApprovalRequest | Execution | Alarm | NotificationDrill | Question | None,
    kind: str,
) -> RoutedMessage:
    if isinstance(subject, NotificationDrill):  # as a new request would go
        return RoutedMessage(at="opened", queue=subject.queue.name, risk=subject.risk)
    if isinstance(subject, ApprovalRequest):
        return RoutedMessage(
            at=kind,
            queue=subject.queue.name,
            tool=subject.tool_name,
            risk=subject.risk,
            tier=subject.tier,
            priority=subject.proposal.priority,
        )
    if isinstance(subject, Execution):
        revision = subject.grant.revision
        return RoutedMessage(
            at=kind,
            queue=revision.known_tool.queue.name,
            tool=revision.known_tool.name,
            risk=revision.risk,
            tier=str(revision.evaluation["tier"]),
            priority=subject.proposal.priority,
        )
    queue = subject.queue.name if subject and subject.queue else ""
    return RoutedMessage(at=kind, queue=queue)


def choose_channels(
    people: Sequence[Person], places: Collection[Place]
) -> list[tuple[Person, str]]:
    """Each person with each personal channel that reaches them. A person whom none of
    the named channels reaches gets mail. Empty where the places name no personal
    channel."""
    known = registry.load_channels()
    names = [
        place.channel
        for place in places
        if place.channel in known and known[place.channel].is_personal
    ]
    reached = {
        name: known[name].select_reachable(people)
        for name in names
        if known[name].is_configured()
    }
    chosen = []
    for person in people if names else ():
        reaching = [name for name, pks in reached.items() if person.pk in pks]
        chosen += [(person, name) for name in reaching or [USUAL_CHANNEL]]
    return chosen


def select_shared_places(
    about: Mapping[str, Any], kind: str, places: Collection[Place]
) -> list[Place]:
    """The places where several people read the notice. That a request is settled is
    said wherever it was announced."""
    known = registry.load_channels()
    shared = [
        place
        for place in places
        if place.channel not in known or not known[place.channel].is_personal
    ]
    request = about.get("request")
    if kind == "settled" and request is not None:
        announced = Notice.objects.filter(request=request, person=None)
        sent = announced.filter(sent_at__isnull=False)
        shared += [Place(*names) for names in sent.values_list("channel", "target")]
    return list(dict.fromkeys(shared))
