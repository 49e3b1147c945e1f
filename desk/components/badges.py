"""The numbers in the navigation: what needs this person now, and which alarms they may
see."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Q, QuerySet

from policies.choices import Role
from policies.models import Person
from reviews import permissions
from reviews.models import Alarm
from reviews.people import preferences
from reviews.roles import Permission


def select_visible_alarms(person: Person) -> QuerySet[Alarm]:
    """Alarms this person may see: all for auditors and administrators; for a supervisor
    those of their queues and those of no queue."""
    if not permissions.has_permission(person, Permission.SEE_ALARMS):
        return Alarm.objects.none()
    if may_see_all_alarms(person):
        return Alarm.objects.all()
    return Alarm.objects.filter(
        Q(queue__in=permissions.queues_of(person)) | Q(queue__isnull=True)
    )


def may_see_all_alarms(person: Person) -> bool:
    roles = permissions.roles_of(person)
    return bool(roles & {Role.ADMINISTRATOR, Role.AUDITOR})


HIGHEST_SHOWN = 99
# Counting stops here: any higher number is printed as "99+".
COUNT_LIMIT = HIGHEST_SHOWN + 1


@dataclass(frozen=True, slots=True)
class Badges:
    """The numbers beside the navigation entries, for one person.

    `queue` counts the pending, unexpired requests that this person can decide and
    nobody else holds, or whose holder offers them to this person; `soon` of them expire
    within ten minutes.
    """

    queue: int = 0
    soon: int = 0
    escalations: int = 0
    batches: int = 0  # waiting for a decision in this person's queues
    announced: int = 0  # in the last seven days, not yet seen by this person
    alarms: int = 0  # not acknowledged yet
    questions: int = 0  # of agents, which this person may answer


@dataclass(frozen=True, slots=True)
class BadgeUpdate:
    """One person's numbers, and when each of the newest requests was opened."""

    badges: Badges
    opened: list[datetime]


EMPTY_UPDATE = BadgeUpdate(Badges(), [])
# The same rule as `visibility.select_decidable`, as SQL for many people at once; a test
# compares the two. Each count walks an index and stops at `COUNT_LIMIT`.
_OPEN_REQUESTS_SQL = """
FROM reviews_approvalrequest AS asked
WHERE asked.status = 'pending'
  AND asked.expires_at > statement_timestamp()
  AND asked.queue_id = ANY (who.queues)
  AND asked.supervisors_only = ANY (who.kinds)
  AND NOT who.me = ANY (asked.barred)
  AND NOT who.me = ANY (asked.closed_to)
  AND asked.canary_for IN ('', who.me)
"""
_COUNTS_SQL = f"""
SELECT who.id, waiting.n, soon.n, handed_up.n, together.n, unseen.n, alarming.n,
  asking.n, fresh.at
FROM jsonb_to_recordset(%s::jsonb)
  AS who (id bigint, me text, kinds boolean[], queues bigint[], muted text[],
          since timestamptz, alarms text)
CROSS JOIN LATERAL (
  SELECT count(*) AS n
  FROM (SELECT {_OPEN_REQUESTS_SQL} LIMIT {COUNT_LIMIT}) AS found) AS waiting
CROSS JOIN LATERAL (
  SELECT count(*) AS n FROM (SELECT {_OPEN_REQUESTS_SQL}
    AND asked.expires_at < statement_timestamp() + interval '10 minutes'
    LIMIT {COUNT_LIMIT}) AS found) AS soon
CROSS JOIN LATERAL (
  SELECT count(*) AS n FROM (SELECT {_OPEN_REQUESTS_SQL}
    AND asked.tier = 'escalate' LIMIT {COUNT_LIMIT}) AS found) AS handed_up
CROSS JOIN LATERAL (
  SELECT count(*) AS n FROM (
    SELECT FROM reviews_batch AS batch
    WHERE batch.status IN ('forming', 'open') AND batch.queue_id = ANY (who.queues)
    LIMIT {COUNT_LIMIT}) AS found) AS together
CROSS JOIN LATERAL (
  SELECT least(count(*), {COUNT_LIMIT}) AS n
  FROM unnest(who.queues) AS told (queue)
  CROSS JOIN LATERAL (
    SELECT effect.id FROM reviews_execution AS effect
    WHERE effect.announced_in_id = told.queue
      AND effect.queued_at > statement_timestamp() - interval '7 days'
    ORDER BY effect.queued_at DESC LIMIT {COUNT_LIMIT}) AS effect
  WHERE NOT EXISTS (SELECT 1 FROM reviews_sighting AS sighting
                    WHERE sighting.execution_id = effect.id
                      AND sighting.person_id = who.id)) AS unseen
CROSS JOIN LATERAL (
  SELECT count(*) AS n FROM (
    SELECT FROM reviews_alarm AS alarm
    WHERE alarm.status = 'open' AND who.alarms <> ''
      AND (who.alarms = 'all' OR alarm.queue_id IS NULL
           OR alarm.queue_id = ANY (who.queues))
    LIMIT {COUNT_LIMIT}) AS found) AS alarming
CROSS JOIN LATERAL (
  SELECT count(*) AS n FROM (
    SELECT FROM reviews_question AS question
    WHERE question.status = 'open' AND question.expires_at > statement_timestamp()
      AND (question.person_id = who.id OR question.queue_id = ANY (who.queues))
    LIMIT {COUNT_LIMIT}) AS found) AS asking
CROSS JOIN LATERAL (
  SELECT array_agg(found.opened_at ORDER BY found.opened_at) AS at
  FROM (SELECT asked.opened_at {_OPEN_REQUESTS_SQL}
    AND who.since IS NOT NULL AND asked.opened_at > who.since
    AND NOT asked.risk = ANY (who.muted)
    ORDER BY asked.opened_at DESC LIMIT {COUNT_LIMIT}) AS found) AS fresh
WHERE NOT EXISTS (SELECT 1 FROM reviews_stop AS stop
                  WHERE stop.scope = 'reviewer' AND stop.key = who.me
                    AND stop.lifted_at IS NULL)
"""  # noqa: S608 the parts are constants


def count_badges(person: Person) -> Badges:
    """Count this person's badges now, in one query."""
    asked = _build_count_input(person)
    updates = _load_updates([asked])
    return updates.get(person.pk, EMPTY_UPDATE).badges


def collect_badge_updates(
    ids: Collection[int], since: Mapping[int, datetime]
) -> dict[int, BadgeUpdate]:
    """The numbers of many people, with the requests opened after each one's moment.

    `since` has a moment by the person's primary key; without one nothing is listed as
    newly opened. Roles, queues and preferences are loaded again, in a few queries for
    all.
    """
    people = permissions.list_people_with_roles(ids)
    asked = [_build_count_input(person, since.get(person.pk)) for person in people]
    updates = _load_updates(asked)
    return {pk: updates.get(pk, EMPTY_UPDATE) for pk in ids}


def _build_count_input(person: Person, since: datetime | None = None) -> dict[str, Any]:
    role = permissions.find_deciding_role(person)
    return {
        "id": person.pk,
        "me": person.public_id,
        "kinds": _list_asked_kinds(role),
        "queues": sorted(permissions.queues_of(person)) if role else [],
        "muted": preferences.load_preferences(person).notifications.muted
        if since
        else [],
        "since": since.isoformat() if since else None,
        "alarms": _find_alarm_scope(person),
    }


def _list_asked_kinds(role: Role | None) -> list[bool]:
    """The values of `supervisors_only` for which this role is asked."""
    if role is None:
        return []
    return [False, True] if role is Role.SUPERVISOR else [False]


def _find_alarm_scope(person: Person) -> str:
    """Which alarms count for this person, by the rule of `select_visible_alarms`."""
    if not permissions.has_permission(person, Permission.SEE_ALARMS):
        return ""
    return "all" if may_see_all_alarms(person) else "mine"


def _load_updates(asked: list[dict[str, Any]]) -> dict[int, BadgeUpdate]:
    if not asked:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS_SQL, [json.dumps(asked)])
        return {
            pk: BadgeUpdate(Badges(*numbers), opened or [])
            for pk, *numbers, opened in cursor.fetchall()
        }


def format_badge(number: int) -> str:
    """What a badge prints: nothing for 0, at most `99+`."""
    if not number:
        return ""
    return f"{HIGHEST_SHOWN}+" if number > HIGHEST_SHOWN else str(number)
