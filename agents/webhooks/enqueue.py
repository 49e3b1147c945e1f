"""A letter is promised once for each event and endpoint, in the transaction that takes
the outbox's message for done no sooner than the letters are there."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction

from agents import locks, transitions
from agents.models import Acknowledgement, Callback, Delivery, Endpoint
from journal import clock, failpoints, log
from journal.models import OutboxMessage
from reviews.models import Proposal

from . import payloads

POST = log.Actor("system", "post")
TRIED_FOR = timedelta(days=3)


@transaction.atomic(durable=True)
def promise(*, message: OutboxMessage) -> list[str]:
    """A letter to each endpoint that is to hear of this; the ids of the new ones. Told
    again it changes nothing. Locks: the outcome."""
    event = payloads.event_of(message)
    locks.outcome(event)
    proposal, now = Proposal.objects.get(pk=message.subject), clock.now()
    places = _places(proposal)
    told = Delivery.objects.filter(event=event, endpoint__in=list(places))
    there = set(told.values_list("endpoint_id", flat=True))
    payload = payloads.write(message, proposal)
    rows = [
        Delivery(
            event=event,
            kind=message.facts["event"],
            proposal=proposal.pk,
            thread=proposal.thread,
            endpoint=endpoint,
            url=url,
            payload=payload,
            next_at=now,
            give_up_at=now + TRIED_FOR,
            created_at=now,
        )
        for endpoint, url in places.items()
        if endpoint.pk not in there
    ]
    if Acknowledgement.objects.filter(pk=event).exists():
        return []
    transitions.delivery.create_many(rows, "promise", actor=POST, now=now)
    failpoints.point("letters_uncommitted", proposal.pk)
    return [row.pk for row in rows]


def _places(proposal: Proposal) -> dict[Endpoint, str]:
    """Where it is heard: the agent's endpoints, and what the proposal itself named."""
    own = Endpoint.objects.select_related("agent").filter(agent__slug=proposal.agent)
    places = {endpoint: endpoint.url for endpoint in own.filter(by_proposal=False)}
    named = Callback.objects.select_related("endpoint__agent")
    callback = named.filter(pk=proposal.pk).first()
    if callback is not None:
        places[callback.endpoint] = callback.url
    return places
