"""Webhook delivery: claim one delivery, send it outside any transaction, record the
result and the time of the next attempt. An event that arrives twice has the same id
both times; the order of events is not guaranteed.

One task sends delivery after delivery of a lane while it has time for another, because
the way through the broker takes longer than most attempts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import structlog
from django.conf import settings

from agents import acknowledgements, locks, transitions
from agents.choices import DeliveryStatus, TakenBy
from agents.models import Callback, Delivery, DeliveryAttempt, Endpoint
from journal import clock, failpoints
from journal.operations import operation
from reviews.alarms import standing
from reviews.choices import AlarmKind
from reviews.models import Proposal
from reviews.outbound import webhooks
from reviews.outbound.trace_context import build_trace_headers

from . import endpoints, lanes, payloads
from .enqueue import POST_ACTOR

FIRST_REST, LONGEST_REST = timedelta(seconds=5), timedelta(hours=6)
MAX_RETRY_AFTER = timedelta(hours=12)  # of a Retry-After
SLOW_SECONDS = 3.0  # seconds; an endpoint that takes longer shares the slow lane
HTTP_GONE = 410
RETRY_AFTER_STATUSES = frozenset({429, 503})


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """The result of one attempt. `status` is the HTTP status, None without an answer;
    `error` is in Counterseal's words, because the answer's own are not kept; `seconds`
    is how long the attempt took."""

    status: int | None
    error: str = ""
    retry_after: str = ""
    seconds: float = 0.0

    @property
    def well(self) -> bool:
        """Whether the endpoint answered 2xx."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def gone(self) -> bool:
        """Whether the endpoint answered 410: it must not be called again."""
        return self.status == HTTP_GONE

    @property
    def fails(self) -> bool:
        """Whether the attempt failed or was slow, so that the endpoint must use the
        slow lane, where it delays no other lane."""
        return not self.well or self.seconds > SLOW_SECONDS

    def asked_rest(self, now: datetime) -> timedelta | None:
        """Parse Retry-After of a 429 or 503, seconds or a date (RFC 9110 10.2.3); None
        without one. At most MAX_RETRY_AFTER."""
        text = self.retry_after.strip()
        if self.status not in RETRY_AFTER_STATUSES:
            return None
        if text.isascii() and text.isdecimal() and len(text) < 10:
            return min(timedelta(seconds=int(text)), MAX_RETRY_AFTER)
        try:
            until = parsedate_to_datetime(text)
        except (ValueError, OverflowError):  # overflow: a year out of range
            return None
        until = until if until.tzinfo else until.replace(tzinfo=UTC)
        return min(max(until - now, timedelta()), MAX_RETRY_AFTER)


def compute_next_attempt(
    attempts: int, answer: AttemptResult, now: datetime
) -> datetime:
    """Return when the next attempt is due: after 5 s, doubling up to 6 h, but no sooner
    than the endpoint's Retry-After asks for."""
    rest = min(FIRST_REST * 2 ** min(attempts - 1, 16), LONGEST_REST)
    asked = answer.asked_rest(now)
    wait: timedelta = max(rest, asked) if asked else rest
    return now + wait


DeliveryColumns = dict[str, Any]  # columns of a delivery

logger = structlog.get_logger(__name__)


def attempt_delivery(delivery_id: str) -> bool:
    """Attempt one delivery if it is due and its lane is free; return whether it was.
    Any number of concurrent calls is safe. Caller holds no transaction. Raises
    NotFound."""
    delivery = claim_delivery(delivery_id=delivery_id)
    if delivery is None:
        return False
    failpoints.point("delivery_taken", delivery.pk)
    try:
        body = payloads.encode_payload(delivery.payload)
    except payloads.UnfitPayload as error:
        logger.error("delivery_unfit", delivery=delivery.pk, places=str(error))
        mark_held(delivery_id=delivery.pk, why=str(error))
        return True
    answer = _send_event(delivery, body)
    failpoints.point("delivery_answered", delivery.pk)
    record_attempt(delivery_id=delivery.pk, attempt=delivery.attempts, answer=answer)
    return True


@operation(
    locks="endpoint, delivery, callback lane (advisory), slow lane (advisory)",
    writes="Delivery, Endpoint",
    after="the attempt",
)
def claim_delivery(*, delivery_id: str) -> Delivery | None:
    """Claim one delivery for a lease and count the attempt; None when it is not due,
    its endpoint is off or asked for a rest, or its lane is busy. Raises NotFound."""
    delivery = locks.lock_delivery(delivery_id)
    now = clock.now()
    endpoint = delivery.endpoint
    if delivery.status != DeliveryStatus.WAITING or delivery.next_at > now:
        return None
    if endpoint.off_at or (endpoint.rest_until and endpoint.rest_until > now):
        return None
    locks.lock_callback_lane(endpoint)
    if lanes.is_busy(endpoint):
        return None
    if lanes.is_slow(endpoint):
        locks.lock_slow_lane()
        if lanes.has_slow_in_flight():
            return None
        endpoint.slow_since = endpoint.slow_since or now
    delivery.attempts += 1
    lease = now + timedelta(seconds=settings.COUNTERSEAL.lease_seconds)
    Delivery.objects.filter(pk=delivery.pk).update(
        attempts=delivery.attempts, busy_until=lease
    )
    Endpoint.objects.filter(pk=endpoint.pk).update(
        tried_at=now, slow_since=endpoint.slow_since
    )
    return delivery


def _send_event(delivery: Delivery, body: bytes) -> AttemptResult:
    """The result is in Counterseal's words: the answer's own are not kept."""
    began, reply, error = time.monotonic(), None, ""
    try:
        reply = webhooks.send_webhook_event(
            delivery.url,
            body,
            message=delivery.event,
            secrets=endpoints.list_secrets(delivery.endpoint, clock.now()),
            timeout=settings.COUNTERSEAL.http_timeout,
            headers=build_trace_headers(_load_traceparent(delivery), delivery.proposal),
        )
    except webhooks.NotAllowed:
        error = "this address is not allowed; nothing was sent"
    except webhooks.NotSent:
        error = "no connection; nothing was sent"
    except webhooks.NoUsableAnswer:
        error = "sent, but no complete response"
    spent = time.monotonic() - began
    if reply is None:
        return AttemptResult(None, error, seconds=spent)
    if not 200 <= reply.status < 300:
        error = f"status {reply.status}"
    if 300 <= reply.status < 400:
        error += "; redirects are not followed"
    return AttemptResult(reply.status, error, reply.retry_after, spent)


def _load_traceparent(delivery: Delivery) -> str:
    proposals = Proposal.objects.filter(pk=delivery.proposal)
    return proposals.values_list("traceparent", flat=True).first() or ""


@operation(
    locks="endpoint, delivery, alarm",
    writes="DeliveryAttempt, Delivery, Endpoint, Callback, Acknowledgement, Alarm",
    logs="delivery.delivered or delivery.dead; outcome.acknowledged, "
    "endpoint.switched_off; alarm.raised, alarm.closed",
    after="the next attempt, mail, wake-up",
)
def record_attempt(*, delivery_id: str, attempt: int, answer: AttemptResult) -> None:
    """Record the result of one attempt: delivered, due again later, or dead. Does
    nothing when another worker has claimed the delivery since. Raises NotFound."""
    delivery, now = locks.lock_delivery(delivery_id), clock.now()
    if delivery.status != DeliveryStatus.WAITING or delivery.attempts != attempt:
        return
    DeliveryAttempt.objects.create(
        delivery=delivery,
        at=now,
        milliseconds=round(answer.seconds * 1000),
        answer=answer.status,
        error=answer.error,
    )
    _update_endpoint(delivery, answer, now)
    columns: DeliveryColumns = {
        "last_answer": answer.status,
        "last_error": answer.error,
    }
    if answer.well:
        _mark_delivered(delivery, columns, now)
    elif answer.gone or now >= delivery.give_up_at:
        mark_dead(delivery, columns, now)
    else:
        due = compute_next_attempt(delivery.attempts, answer, now)
        Delivery.objects.filter(pk=delivery.pk).update(
            **columns, next_at=min(due, delivery.give_up_at), busy_until=None
        )
    failpoints.point("delivery_uncommitted", delivery_id)


def _update_endpoint(delivery: Delivery, answer: AttemptResult, now: datetime) -> None:
    """Update the endpoint's lane, rest and switch from one result. Retry-After and 410
    from a proposal's own callback address do not apply to the whole endpoint."""
    endpoint = delivery.endpoint
    of_all = delivery.url == endpoint.url
    asked = answer.asked_rest(now) if of_all else None
    Endpoint.objects.filter(pk=endpoint.pk).update(
        slow_since=(endpoint.slow_since or now) if answer.fails else None,
        rest_until=now + asked if asked else None,
    )
    if answer.gone and of_all:
        endpoints.mark_switched_off(endpoint, "gone", POST_ACTOR, now)
    elif answer.gone:
        Callback.objects.filter(pk=delivery.proposal, url=delivery.url).delete()


def _mark_delivered(
    delivery: Delivery, columns: DeliveryColumns, now: datetime
) -> None:
    _end_delivery(delivery, "deliver", columns, now)
    outcome = delivery.payload["data"]["outcome"]
    if outcome is not None:
        proposal = Proposal.objects.get(pk=delivery.proposal)
        agent = delivery.endpoint.agent
        acknowledgements.record_acknowledgement(
            agent, proposal, outcome, TakenBy.WEBHOOK, now
        )
    endpoint = delivery.endpoint
    dead = Delivery.objects.filter(endpoint=endpoint, status=DeliveryStatus.DEAD)
    if endpoint.slow_since is not None and not dead.exists():
        kind, subject = AlarmKind.DELIVERY_DEAD, endpoint.pk
        standing.close_resolved_alarm(kind, subject=subject, now=now, code="delivered")


def mark_dead(delivery: Delivery, columns: DeliveryColumns, now: datetime) -> None:
    """End a delivery without success and raise the alarm of its endpoint. Caller holds
    the delivery's lock."""
    _end_delivery(delivery, "give_up", columns, now)
    _raise_alarm(AlarmKind.DELIVERY_DEAD, delivery, delivery.endpoint_id, now)


def _end_delivery(
    delivery: Delivery, event: str, columns: DeliveryColumns, now: datetime
) -> None:
    changes = {**columns, "busy_until": None, "ended_at": now}
    transitions.delivery.apply(
        delivery, event, actor=POST_ACTOR, now=now, changes=changes
    )


def _raise_alarm(
    kind: AlarmKind, delivery: Delivery, subject: str, now: datetime
) -> None:
    """An endpoint with many dead deliveries has one alarm."""
    standing.raise_alarm(
        kind,
        subject=subject,
        proposal=Proposal.objects.get(pk=delivery.proposal),
        data={"delivery": delivery.pk, "endpoint": delivery.endpoint_id},
        now=now,
        actor=POST_ACTOR,
    )


@operation(
    locks="endpoint, delivery, alarm",
    writes="Delivery, Alarm",
    logs="delivery.held, alarm.raised",
    after="mail, wake-up",
)
def mark_held(*, delivery_id: str, why: str) -> None:
    """Mark as held a delivery whose payload violates the published schema, and raise an
    alarm. `why` names the faulty fields. Raises NotFound."""
    delivery, now = locks.lock_delivery(delivery_id), clock.now()
    if delivery.status != DeliveryStatus.WAITING:
        return
    error = f"invalid payload at {why}"[:200]
    _end_delivery(delivery, "hold", {"last_error": error}, now)
    _raise_alarm(AlarmKind.INVALID_OUTCOME, delivery, delivery.pk, now)


def deliver_lane(delivery_id: str) -> list[str]:
    """Attempt this delivery, then those that wait in the same lane, while there is
    time. Return the ids of the deliveries to start next. A task that found nothing to
    do returns no ids: otherwise each task would start another one for as long as
    anything waits. Raises NotFound."""
    until = time.monotonic() + compute_spare_seconds()
    while attempt_delivery(delivery_id):
        following = lanes.list_next_in_lane(delivery_id)
        if not following:
            return lanes.list_due_slow()
        if time.monotonic() >= until:
            return following
        (delivery_id,) = following
    return []


def compute_spare_seconds() -> float:
    """Return for how many seconds a task may start further attempts: half of the time
    that its soft limit leaves beside the time-out of the last attempt."""
    house = settings.COUNTERSEAL
    return (house.soft_time_limit - house.http_timeout) / 2
