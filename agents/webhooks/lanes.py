"""Whose turn it is. One letter at a time is on its way in each lane: an endpoint that
people registered, or all the places that proposals of one agent named and that answer.
And one in all to places where letters fail or take long, and to those that only a
proposal named and nobody has heard from yet: whoever is slow makes nobody else wait."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import connection
from django.db.models import Q

from agents.choices import DeliveryStatus
from agents.models import Delivery, Endpoint
from journal import clock

# `is_slow` in SQL; such places have lanes of their own: one in all is on its way there.
_SLOW = "({0}.slow_since IS NOT NULL OR {0}.by_proposal AND {0}.tried_at IS NULL)"
_LANE = (
    f"CASE WHEN {{0}}.by_proposal AND NOT {_SLOW}"
    " THEN 'of ' || {0}.agent_id ELSE {0}.id END"
)
# One statement: the oldest due letter of each lane that is free for one. Of the slow,
# first who was waited for longest ago, by agents: one of them may have named many.
_DUE = f"""
WITH busy AS MATERIALIZED (
    SELECT DISTINCT {_LANE.format("there")} AS lane
    FROM agents_delivery AS letter
    JOIN agents_endpoint AS there ON there.id = letter.endpoint_id
    WHERE letter.status = 'waiting' AND letter.busy_until > clock_timestamp()
), firsts AS (
    SELECT DISTINCT ON (lane) {_LANE.format("place")} AS lane, place.agent_id,
           place.tried_at, first.id, first.next_at
    FROM agents_endpoint AS place
    CROSS JOIN LATERAL (
        SELECT letter.id, letter.next_at FROM agents_delivery AS letter
        WHERE letter.endpoint_id = place.id AND letter.status = 'waiting'
          AND letter.next_at <= clock_timestamp()
        ORDER BY letter.next_at LIMIT 1
    ) AS first
    WHERE place.off_at IS NULL
      AND (place.rest_until IS NULL OR place.rest_until <= clock_timestamp())
      AND {_SLOW.format("place")} = %(slow)s
      AND (%(only)s = '' OR (place.agent_id, {_LANE.format("place")}) = (
        SELECT its.agent_id, {_LANE.format("its")} FROM agents_endpoint AS its
        JOIN agents_delivery AS letter ON letter.endpoint_id = its.id
        WHERE letter.id = %(only)s))
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
_SLOW_NOW = """
SELECT count(*) FROM agents_endpoint AS place
JOIN agents_delivery AS busy ON busy.endpoint_id = place.id
WHERE place.slow_since IS NOT NULL AND busy.status = 'waiting'
  AND busy.busy_until > clock_timestamp()
"""
# Of letters whose endpoint is switched off, so that nobody tries them any more.
_OVERDUE = """
SELECT letter.id FROM agents_delivery AS letter
JOIN agents_endpoint AS place ON place.id = letter.endpoint_id
WHERE letter.status = 'waiting' AND place.off_at IS NOT NULL
  AND letter.give_up_at <= clock_timestamp()
LIMIT 500
"""
AT_ONCE = 100


def letters() -> list[str]:
    """The letters that may go now: one in each lane, one for all slow ones."""
    return _ids(_DUE, slow=False, only="", most=AT_ONCE) + slow_letters()


def slow_letters() -> list[str]:
    """The next one for an endpoint where letters fail, unless one is on its way."""
    return [] if slow_now() else _ids(_DUE, slow=True, only="", most=1)


def firsts(delivery_ids: Iterable[str]) -> list[str]:
    """Whose turn it is in the lanes of these letters; nobody's where one is on its way,
    for whoever carries that goes on."""
    found = [pk for new in delivery_ids for pk in next_of(new) or slow_letters()]
    return list(dict.fromkeys(found))


def next_of(delivery_id: str) -> list[str]:
    """The next one in the lane of this letter, unless one is on its way or its place is
    one of the slow."""
    return _ids(_DUE, slow=False, only=delivery_id, most=1)


def is_slow(endpoint: Endpoint) -> bool:
    """Whether it shares its turn: letters fail there or take long, or an agent named it
    and nobody has heard from it yet."""
    unheard = endpoint.by_proposal and endpoint.tried_at is None
    return endpoint.slow_since is not None or unheard


def is_busy(endpoint: Endpoint) -> bool:
    """Whether a letter is on its way in its lane. Caller holds the lane."""
    place = Q(endpoint=endpoint)
    if endpoint.by_proposal and not is_slow(endpoint):
        agent, answers = endpoint.agent_id, Q(endpoint__slow_since__isnull=True)
        place = answers & Q(endpoint__agent=agent, endpoint__by_proposal=True)
    found = Delivery.objects.filter(place, status=DeliveryStatus.WAITING)
    return found.filter(busy_until__gt=clock.ClockTimestamp()).exists()


def overdue() -> list[str]:
    """Letters to an endpoint that is switched off whose time is over."""
    return _ids(_OVERDUE)


def slow_now() -> int:
    """How many letters are on their way to slow endpoints."""
    with connection.cursor() as cursor:
        cursor.execute(_SLOW_NOW)
        return int(cursor.fetchone()[0])


def _ids(statement: str, **given: str | int | bool) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(statement, given or None)
        return [pk for (pk,) in cursor.fetchall()]
