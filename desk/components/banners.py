"""The notices on every page: the database's clock, open alarms, declared incidents and
switches, and a policy that has changed; and the model of the incidents page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Count, Q

from journal import cursors
from policies import active, tools
from policies.choices import Tier
from policies.evaluation import Evaluation
from policies.models import Person, PolicyVersion, Queue
from reviews import permissions
from reviews.choices import EVERY_QUEUE_VALUE, SCOPE_NOUNS, Scope
from reviews.executions import rechecks
from reviews.governance import ruling
from reviews.models import IS_OPEN, ApprovalRequest, Incident, RequestVersion
from reviews.roles import Permission

from . import log_lines
from .badges import COUNT_LIMIT

MOST_ENDED = 50  # ended incidents on the page
EVERY_QUEUE_TITLE = "All queues"
# SQL, because every page needs the clock and this adds the rest to the same query.
_DESK_STATUS_SQL = f"""
SELECT clock_timestamp(),
  (SELECT count(*) FROM (
    SELECT FROM reviews_alarm WHERE status = 'open' LIMIT {COUNT_LIMIT}) AS found),
  (SELECT count(*) FROM (
    SELECT FROM reviews_question WHERE status = 'open' AND person_id = %s
      AND expires_at > statement_timestamp() LIMIT {COUNT_LIMIT}) AS found),
  EXISTS (SELECT FROM policies_passkey WHERE person_id = %s), (
  SELECT jsonb_agg(jsonb_build_array(i.queue_id, q.title, i.at, i.reason) ORDER BY i.at)
  FROM reviews_incident AS i LEFT JOIN policies_queue AS q ON q.id = i.queue_id
  WHERE i.ended_at IS NULL), (
  SELECT jsonb_agg(jsonb_build_array(s.id, s.scope, s.key, s.mode, s.at, s.reason,
      CASE WHEN p.id IS NOT NULL THEN jsonb_build_object(
        'id', p.id, 'public_id', p.public_id, 'username', p.username,
        'first_name', p.first_name, 'last_name', p.last_name) END,
      (SELECT jsonb_agg(DISTINCT t.queue_id) FROM policies_tool AS t
       WHERE s.scope = 'tool' AND t.name = s.key))
    ORDER BY s.at DESC)
  FROM reviews_stop AS s LEFT JOIN policies_person AS p ON p.public_id = s.by
  WHERE s.lifted_at IS NULL AND (s.scope IN ('agent', 'tool', 'everything')
    OR s.scope = 'reviewer' AND EXISTS (SELECT FROM policies_person AS w
                                        WHERE w.public_id = s.key AND w.is_active)))
"""  # noqa: S608 the part is a constant


@dataclass(frozen=True, slots=True)
class IncidentBanner:
    """One open incident; `where` is the queue's title, empty for every queue."""

    queue: int | None
    where: str
    since: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class SwitchBanner:
    """One agent, tool or everything that a person paused or stopped, as a banner; and
    the decisions of an active person, for that person."""

    id: int
    scope: str
    key: str
    mode: str
    at: datetime
    reason: str
    by: Person | str
    queues: frozenset[int] = frozenset()  # those of a tool

    @property
    def subject(self) -> str:
        return f"{SCOPE_NOUNS[Scope(self.scope)]} {self.key}".rstrip()


@dataclass(frozen=True, slots=True)
class DeskStatus:
    """The database's clock, and what is open at that moment."""

    now: datetime
    alarms: int = 0  # open in any queue, counted up to the limit of a badge
    questions: int = 0  # open ones that name the person, counted likewise
    has_passkey: bool = False
    open: tuple[IncidentBanner, ...] = ()
    switches: tuple[SwitchBanner, ...] = ()

    def concerning(self, person: Person | None) -> list[IncidentBanner]:
        """Incidents of every queue, and of queues that this person is in or may see."""
        if person is None or not self.open:
            return []
        if permissions.has_permission(person, Permission.SEE_ALL):
            return list(self.open)
        queues = {None, *permissions.queues_of(person)}
        return [incident for incident in self.open if incident.queue in queues]

    def list_switches(self, person: Person | None) -> list[SwitchBanner]:
        """The switches but for those on tools of other people's queues."""
        if person is None or not self.switches:
            return []
        if permissions.has_permission(person, Permission.SEE_ALL):
            return list(self.switches)
        queues = permissions.queues_of(person)
        return [s for s in self.switches if not s.queues or s.queues & queues]


def load_desk_status(person: Person | None) -> DeskStatus:
    """Load the clock, the open alarms, incidents and switches, how many questions name
    the person and whether they have a passkey, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(_DESK_STATUS_SQL, [person.pk if person else None] * 2)
        now, alarms, questions, keyed, incidents, switches = cursor.fetchone()
    return DeskStatus(
        now,
        alarms,
        questions,
        keyed,
        tuple(
            IncidentBanner(queue, title or "", datetime.fromisoformat(at), reason)
            for queue, title, at, reason in _parse_rows(incidents)
        ),
        tuple(_build_switch_banner(*row) for row in _parse_rows(switches)),
    )


def _parse_rows(aggregate: Any) -> list[list[Any]]:
    """The rows of a JSON aggregate, which the driver returns as text or as a list."""
    rows: list[list[Any]] = (
        json.loads(aggregate) if isinstance(aggregate, str) else aggregate
    )
    return rows or []


def _build_switch_banner(
    pk: int,
    scope: str,
    key: str,
    mode: str,
    at: str,
    reason: str,
    by: dict[str, Any] | None,
    queues: list[int] | None,
) -> SwitchBanner:
    moment, who = datetime.fromisoformat(at), Person(**by) if by else "Someone"
    return SwitchBanner(
        pk, scope, key, mode, moment, reason, who, frozenset(queues or ())
    )


@dataclass(frozen=True, slots=True)
class IncidentLine:
    """One incident on the incidents page; `requests` counts the open requests whose
    deadlines it freezes now."""

    id: int
    where: str
    at: datetime
    by: Person | str
    reason: str
    requests: int
    ended_at: datetime | None
    ended_by: Person | str

    @property
    def lasted(self) -> timedelta | None:
        """How long it lasted; None while it is open."""
        return self.ended_at - self.at if self.ended_at else None


@dataclass(frozen=True, slots=True)
class IncidentsPage:
    """The incidents page: open and ended incidents, and what may still be frozen."""

    open: list[IncidentLine]
    ended: list[IncidentLine]
    more: int  # ended ones that are not listed
    may: bool  # whether this person may declare one
    queues: list[Queue]  # without an open incident of their own
    every: bool  # whether an incident over every queue may be declared

    @property
    def offered(self) -> dict[str, str]:
        """The form's choices by value: queues not frozen yet, and every queue."""
        every = {EVERY_QUEUE_VALUE: EVERY_QUEUE_TITLE} if self.every else {}
        return every | {str(queue.pk): queue.title for queue in self.queues}

    def offers(self, chosen: str) -> bool:
        return chosen in self.offered


def build_incidents_page(person: Person) -> IncidentsPage:
    """The incidents that concern this person, open ones and the newest ended ones."""
    incidents = Incident.objects.select_related("queue").filter(
        _filter_for_person(person)
    )
    now_open = list(incidents.filter(ended_at__isnull=True).order_by("at"))
    past = incidents.filter(ended_at__isnull=False)
    over = list(past.order_by("-at")[:MOST_ENDED])
    frozen = {row.queue_id for row in now_open}
    queues = [
        queue for queue in Queue.objects.order_by("title") if queue.pk not in frozen
    ]
    lines = _build_incident_lines([*now_open, *over])
    return IncidentsPage(
        open=[line for line in lines if line.ended_at is None],
        ended=[line for line in lines if line.ended_at is not None],
        more=cursors.count_rest(past, over, MOST_ENDED),
        may=permissions.has_permission(person, Permission.DECLARE),
        queues=queues,
        every=None not in frozen,
    )


def _filter_for_person(person: Person) -> Q:
    if permissions.has_permission(person, Permission.SEE_ALL):
        return Q()
    queues = permissions.queues_of(person)
    return Q(queue__isnull=True) | Q(queue__in=queues)


def _build_incident_lines(rows: Iterable[Incident]) -> list[IncidentLine]:
    rows = list(rows)
    ids = [who for row in rows for who in (row.declared_by, row.ended_by)]
    people = log_lines.load_people(ids)
    counts = _count_open_by_queue() if any(row.ended_at is None for row in rows) else {}
    return [
        IncidentLine(
            id=row.pk,
            where=row.queue.title if row.queue else EVERY_QUEUE_TITLE,
            at=row.at,
            by=people.get(row.declared_by, "Someone"),
            reason=row.reason,
            requests=_count_frozen_requests(counts, row),
            ended_at=row.ended_at,
            ended_by=people.get(row.ended_by, "Someone") if row.ended_by else "",
        )
        for row in rows
    ]


def _count_open_by_queue() -> dict[int, int]:
    requests = ApprovalRequest.objects.filter(IS_OPEN).order_by()
    return dict(requests.values_list("queue").annotate(n=Count("pk")))


def _count_frozen_requests(counts: Mapping[int, int], row: Incident) -> int:
    if row.queue_id is None:
        return sum(counts.values())
    return counts.get(row.queue_id, 0)


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """What a policy that was activated after the proposal means for it. `after` is its
    number, `text` says what follows."""

    after: int
    text: str
    refuses: bool  # the check before execution would refuse an approval of this


def find_policy_change(
    versions: Iterable[RequestVersion], now: datetime
) -> PolicyChange | None:
    """The gravest change for these sealed versions of open requests; None while the
    policy of each proposal is still active."""
    policy = active.find_active_policy()
    if policy is None:
        return None
    changed = [version for version in versions if version.policy_id != policy.pk]
    changes = [_describe_policy_change(version, policy, now) for version in changed]
    return min(changes, key=lambda change: not change.refuses) if changes else None


_TOOL_GONE = "The policy no longer contains this tool, so this cannot run."
_ARGUMENTS_INVALID = "The tool no longer accepts these arguments, so this cannot run."
_NEEDS_MORE_READINGS = (
    "Its rules need more data than was read; Counterseal reads it before this runs."
)
_ASKS_LESS = "It requires less now. What is shown here is still required."
_ASKS_SAME = "It requires the same. Nothing changes."


def _describe_policy_change(
    version: RequestVersion, policy: PolicyVersion, now: datetime
) -> PolicyChange:
    revision, tier = version.revision, Tier(version.tier)
    current = tools.find_successor(revision.known_tool, policy)
    if current is None:
        return PolicyChange(policy.number, _TOOL_GONE, refuses=True)
    if tools.list_argument_errors(current, revision.args):
        return PolicyChange(policy.number, _ARGUMENTS_INVALID, refuses=True)
    if ruling.is_reading_incomplete(revision, policy):
        return PolicyChange(policy.number, _NEEDS_MORE_READINGS, refuses=False)
    asked = ruling.reevaluate_revision(revision, policy, now=now)
    was = Evaluation.from_json(revision.evaluation)
    if asked.tier.rank > tier.rank or _needs_more_authority(asked, was):
        tightened = rechecks.describe_tightening(revision, asked)
        text = f"It requires more now: {tightened}"
        return PolicyChange(policy.number, text, refuses=True)
    text = _ASKS_LESS if asked.tier.rank < tier.rank else _ASKS_SAME
    return PolicyChange(policy.number, text, refuses=False)


def _needs_more_authority(asked: Evaluation, was: Evaluation) -> bool:
    """Whether the approvals asked for here may not be enough under the new policy."""
    people = sum(step.required for step in asked.steps)
    before = sum(step.required for step in was.steps)
    return people > before or (asked.step_up and not was.step_up)
