"""Delivery lanes: which deliveries may be sent now, one in flight for each lane.

A lane is a registered endpoint, or all callback endpoints of one agent that answer
well. Endpoints that fail or are slow, and callback endpoints that were never tried,
share the slow lane: one delivery in flight to all of them, so that a slow endpoint
delays no other lane.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db import connection
from django.db.models import Q, QuerySet

from agents.choices import DeliveryStatus
from agents.models import Delivery, Endpoint
from journal import clock

# `is_slow` in SQL. Here each slow endpoint counts as a lane of its own; that only one
# delivery is in flight to all of them is checked apart (`has_slow_in_flight`).
_SLOW_SQL = "({0}.slow_since IS NOT NULL OR {0}.by_proposal AND {0}.tried_at IS NULL)"
_LANE_SQL = (
    f"CASE WHEN {{0}}.by_proposal AND NOT {_SLOW_SQL}"
    " THEN 'of ' || {0}.agent_id ELSE {0}.id END"
)
# One statement: the oldest due delivery of each lane that has none in flight. The slow
# ones start with the agent whose slow endpoints were tried longest ago, not with the
# endpoint: one agent may have named many.
_DUE_SQL = f"""
WITH busy AS MATERIALIZED (
    SELECT DISTINCT {_LANE_SQL.format("there")} AS lane
    FROM agents_delivery AS delivery
    JOIN agents_endpoint AS there ON there.id = delivery.endpoint_id
    WHERE delivery.status = 'waiting' AND delivery.busy_until > clock_timestamp()
), firsts AS (
    SELECT DISTINCT ON (lane) {_LANE_SQL.format("place")} AS lane, place.agent_id,
           place.tried_at, first.id, first.next_at
    FROM agents_endpoint AS place
    CROSS JOIN LATERAL (
        SELECT delivery.id, delivery.next_at FROM agents_delivery AS delivery
        WHERE delivery.endpoint_id = place.id AND delivery.status = 'waiting'
          AND delivery.next_at <= clock_timestamp()
        ORDER BY delivery.next_at LIMIT 1
    ) AS first
    WHERE place.off_at IS NULL
      AND (place.rest_until IS NULL OR place.rest_until <= clock_timestamp())
      AND {_SLOW_SQL.format("place")} = %(slow)s
      AND (%(only)s = '' OR (place.agent_id, {_LANE_SQL.format("place")}) = (
        SELECT its.agent_id, {_LANE_SQL.format("its")} FROM agents_endpoint AS its
        JOIN agents_delivery AS delivery ON delivery.endpoint_id = its.id
        WHERE delivery.id = %(only)s))
    ORDER BY lane, place.tried_at NULLS FIRST, first.next_at
)
SELECT firsts.id FROM firsts
WHERE NOT EXISTS (SELECT 1 FROM busy WHERE busy.lane = firsts.lane)
ORDER BY CASE WHEN %(slow)s THEN (
    SELECT max(other.tried_at) FROM agents_endpoint AS other
    WHERE other.agent_id = firsts.agent_id AND other.slow_since IS NOT NULL) END
    NULLS FIRST, firsts.tried_at NULLS FIRST, firsts.next_at
LIMIT %(most)s
"""  # noqa: S608 the parts are constants
MAX_LANES = 100


def list_due_deliveries() -> list[str]:
    """List the deliveries to start now: one of each free lane, one of the slow lane."""
    return _fetch_due(slow=False, most=MAX_LANES) + list_due_slow()


def list_due_slow() -> list[str]:
    """List the next delivery of the slow lane; none while one is in flight."""
    return [] if has_slow_in_flight() else _fetch_due(slow=True, most=1)


def list_first_in_lanes(delivery_ids: Iterable[str]) -> list[str]:
    """List the deliveries to start in the lanes of these new ones. A lane with one in
    flight gets none: the task that sends it continues with the lane."""
    firsts = [
        pk for new in delivery_ids for pk in list_next_in_lane(new) or list_due_slow()
    ]
    return list(dict.fromkeys(firsts))


def list_next_in_lane(delivery_id: str) -> list[str]:
    """List the next delivery in the lane of this one; none while one is in flight, or
    when its endpoint is slow."""
    return _fetch_due(slow=False, most=1, only=delivery_id)


def is_slow(endpoint: Endpoint) -> bool:
    """Whether the endpoint uses the slow lane: its last attempt failed or was slow, or
    a callback URL named it and it was never tried."""
    unheard = endpoint.by_proposal and endpoint.tried_at is None
    return endpoint.slow_since is not None or unheard


def is_busy(endpoint: Endpoint) -> bool:
    """Whether a delivery is in flight in the endpoint's lane. Caller holds the lane's
    lock: the endpoint's row or `lock_callback_lane`."""
    place = Q(endpoint=endpoint)
    if endpoint.by_proposal and not is_slow(endpoint):
        agent, answers = endpoint.agent_id, Q(endpoint__slow_since__isnull=True)
        place = answers & Q(endpoint__agent=agent, endpoint__by_proposal=True)
    return _select_in_flight().filter(place).exists()


def has_slow_in_flight() -> bool:
    """Whether a delivery is in flight to a slow endpoint."""
    return _select_in_flight().filter(endpoint__slow_since__isnull=False).exists()


def _select_in_flight() -> QuerySet[Delivery]:
    return Delivery.objects.filter(
        status=DeliveryStatus.WAITING, busy_until__gt=clock.ClockTimestamp()
    )


def _fetch_due(*, slow: bool, most: int, only: str = "") -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(_DUE_SQL, {"slow": slow, "most": most, "only": only})
        return [pk for (pk,) in cursor.fetchall()]
