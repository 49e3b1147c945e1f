"""Creation of webhook deliveries: one for each event and endpoint. The outbox message
counts as done only after its deliveries are committed."""

from __future__ import annotations

from datetime import timedelta

from agents import locks, transitions
from agents.models import Acknowledgement, Callback, Delivery, Endpoint
from journal import clock, failpoints, log
from journal.models import OutboxMessage
from journal.operations import operation
from reviews.models import Proposal

from . import payloads

POST_ACTOR = log.Actor("system", "post")
GIVE_UP_AFTER = timedelta(days=3)


@operation(
    locks="outcome (advisory)",
    writes="Delivery",
    logs="delivery.promised",
    after="webhook, wake-up",
)
def enqueue_deliveries(*, message: OutboxMessage) -> list[str]:
    """Create a delivery for each endpoint that is to receive this event; return their
    ids. A repeated call creates nothing, nor does one for an acknowledged outcome."""
    event = payloads.compute_event_id(message)
    locks.lock_outcome(event)
    proposal, now = Proposal.objects.get(pk=message.subject), clock.now()
    places = _collect_endpoints(proposal)
    existing = Delivery.objects.filter(event=event, endpoint__in=list(places))
    there = set(existing.values_list("endpoint_id", flat=True))
    payload = payloads.build_payload(message, proposal)
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
            give_up_at=now + GIVE_UP_AFTER,
            created_at=now,
        )
        for endpoint, url in places.items()
        if endpoint.pk not in there
    ]
    if Acknowledgement.objects.filter(pk=event).exists():
        return []
    transitions.delivery.create_many(rows, "promise", actor=POST_ACTOR, now=now)
    failpoints.point("deliveries_uncommitted", proposal.pk)
    return [row.pk for row in rows]


def _collect_endpoints(proposal: Proposal) -> dict[Endpoint, str]:
    own = Endpoint.objects.select_related("agent").filter(agent__slug=proposal.agent)
    places = {endpoint: endpoint.url for endpoint in own.filter(by_proposal=False)}
    named = Callback.objects.select_related("endpoint__agent")
    callback = named.filter(pk=proposal.pk).first()
    if callback is not None:
        places[callback.endpoint] = callback.url
    return places
