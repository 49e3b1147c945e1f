"""Whose turn it is. One letter at a time is on its way to each endpoint, and one in all
to those where letters fail or take long: whoever is slow makes nobody else wait."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import connection

# One statement: the oldest due letter of each endpoint that is free for one.
_DUE = """
SELECT first.id
FROM agents_endpoint AS place
CROSS JOIN LATERAL (
    SELECT letter.id, letter.next_at FROM agents_delivery AS letter
    WHERE letter.endpoint_id = place.id AND letter.status = 'waiting'
      AND letter.next_at <= clock_timestamp()
    ORDER BY letter.next_at LIMIT 1
) AS first
WHERE place.off_at IS NULL
  AND (place.rest_until IS NULL OR place.rest_until <= clock_timestamp())
  AND NOT EXISTS (
    SELECT 1 FROM agents_delivery AS busy
    WHERE busy.endpoint_id = place.id AND busy.status = 'waiting'
      AND busy.busy_until > clock_timestamp())
  AND (place.slow_since IS NOT NULL) = %(slow)s
  AND (%(only)s = '' OR place.id = (
    SELECT endpoint_id FROM agents_delivery WHERE id = %(only)s))
ORDER BY place.tried_at NULLS FIRST, first.next_at
LIMIT %(most)s
"""
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
    """The letters that may go now: one for each endpoint, one for all slow ones."""
    return _ids(_DUE, slow=False, only="", most=AT_ONCE) + slow_letters()


def slow_letters() -> list[str]:
    """The next one for an endpoint where letters fail, unless one is on its way. The
    one that was tried longest ago comes first."""
    return [] if slow_now() else _ids(_DUE, slow=True, only="", most=1)


def firsts(delivery_ids: Iterable[str]) -> list[str]:
    """Whose turn it is at the endpoints of these letters; nobody's where one is on its
    way, for whoever carries that goes on."""
    found = [pk for new in delivery_ids for pk in next_of(new) or slow_letters()]
    return list(dict.fromkeys(found))


def next_of(delivery_id: str) -> list[str]:
    """The next one for the endpoint of this letter, unless one is on its way or it is
    one of the slow."""
    return _ids(_DUE, slow=False, only=delivery_id, most=1)


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
