"""The alarm sweep: search the rows for broken promises that were not noticed when they
happened, and raise their alarms.

Each search uses a partial index over rare rows and looks back no further than HORIZON,
so its cost does not grow with history.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import (
    BooleanField,
    Exists,
    F,
    Func,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextField,
)

from journal import clock, restore_epochs
from reviews import locks
from reviews.choices import AlarmKind, ExecutionStatus, GrantStatus, RequestStatus
from reviews.evidence import log_hashes
from reviews.models import Alarm, ApprovalRequest, Execution, LateReport
from reviews.models.alarms import STANDING

from . import undecidable
from .late_reports import ABOUT_REPORTS
from .standing import CHUNK, DELIBERATE, close_itself
from .standing import about as standing_about

HORIZON = timedelta(hours=24)
# After its window, a queued execution has this long to be refused before an alarm.
GRACE = timedelta(minutes=1)
Search = Callable[[datetime], QuerySet[Execution]]


class _Hash(Func):
    """The action hash of the stored bytes, computed by the database."""

    template = "('sha256:' || encode(sha256(%(expressions)s), 'hex'))"
    output_field = TextField()


class _LacksVotes(Func):
    """Whether the votes that a request needs are missing; defined in migration 0014."""

    function = "reviews_lacks_votes"
    output_field = BooleanField()


def refused(now: datetime) -> QuerySet[Execution]:
    """Executions that were approved or announced, and refused before they ran."""
    found = Execution.objects.filter(
        status=ExecutionStatus.REFUSED, finished_at__gt=now - HORIZON
    ).exclude(code__in=DELIBERATE)
    return _promised(_new(found, AlarmKind.NEVER_EXECUTED))


def stuck(now: datetime) -> QuerySet[Execution]:
    """Executions that were approved or announced, and are still queued after their
    window. Those that came back with a backup may have run, so they are left out."""
    until = restore_epochs.inherited_until()
    own = Q() if until is None else Q(proposal__created_at__gte=until)
    found = Execution.objects.filter(
        own,
        status=ExecutionStatus.QUEUED,
        due_at__lt=now - GRACE,
        grant__expires_at__lt=now - GRACE,
    )
    return _promised(_new(found, AlarmKind.NEVER_EXECUTED))


def ungranted(now: datetime) -> QuerySet[Execution]:
    """Executions that began although their grant was never spent."""
    found = Execution.objects.filter(
        ~Q(grant__status=GrantStatus.SPENT),
        grant__expires_at__gt=now - HORIZON,
        status__in=[
            ExecutionStatus.CLAIMED,
            ExecutionStatus.SUCCEEDED,
            ExecutionStatus.FAILED,
            ExecutionStatus.UNKNOWN,
        ],
    )
    return _new(found, AlarmKind.WITHOUT_GRANT)


def altered(status: ExecutionStatus) -> Search:
    """Build the search for unfinished executions whose stored bytes differ from those
    that were granted or logged."""

    def search(now: datetime) -> QuerySet[Execution]:
        found = Execution.objects.annotate(
            stored=_Hash("grant__revision__canonical"), logged=log_hashes.first_named()
        ).filter(
            ~Q(stored=F("grant__action_hash"))
            | ~Q(grant__action_hash=F("grant__revision__action_hash"))
            | ~Q(logged=F("grant__action_hash")),
            status=status,
        )
        return _new(found, AlarmKind.OTHER_BYTES)

    return search


def unvoted(status: ExecutionStatus) -> Search:
    """Build the search for unfinished executions whose request lacks its votes."""

    def search(now: datetime) -> QuerySet[Execution]:
        asked = F("proposal__request")
        version, action_hash = (
            "proposal__request__version",
            "proposal__request__action_hash",
        )
        found = Execution.objects.annotate(
            lacks=_LacksVotes(asked, F(version), F(action_hash))
        ).filter(
            Q(lacks=True) | ~Q(proposal__request__status=RequestStatus.AUTHORIZED),
            status=status,
            proposal__request__isnull=False,
        )
        return _new(found, AlarmKind.WITHOUT_VOTES)

    return search


def denied(now: datetime) -> QuerySet[Execution]:
    """Executions that a late report calls done although they are recorded as failed,
    refused or unknown, and whose report no alarm covers."""
    dealt = Q(closed_at__isnull=True) | Q(closed_at__gte=OuterRef("at"))
    about = Alarm.objects.filter(
        dealt, subject=OuterRef("execution"), kind__in=ABOUT_REPORTS
    )
    said = LateReport.objects.filter(
        ~Exists(about), at__gt=now - HORIZON, status="succeeded", counted=False
    )
    return Execution.objects.filter(
        pk__in=said.values("execution"),
        status__in=[
            ExecutionStatus.FAILED,
            ExecutionStatus.REFUSED,
            ExecutionStatus.UNKNOWN,
        ],
    ).order_by()


def after_all(now: datetime) -> QuerySet[Alarm]:
    """Open alarms that say an effect never ran, although it has run by now."""
    ran = Execution.objects.filter(
        pk=OuterRef("subject"), status=ExecutionStatus.SUCCEEDED
    )
    return Alarm.objects.filter(STANDING, Exists(ran), kind=AlarmKind.NEVER_EXECUTED)


SEARCHES: tuple[tuple[AlarmKind, str, Search], ...] = (
    (AlarmKind.NEVER_EXECUTED, "refused", refused),
    (AlarmKind.NEVER_EXECUTED, "stuck", stuck),
    (AlarmKind.WITHOUT_GRANT, "ungranted", ungranted),
    (AlarmKind.OTHER_BYTES, "queued", altered(ExecutionStatus.QUEUED)),
    (AlarmKind.OTHER_BYTES, "claimed", altered(ExecutionStatus.CLAIMED)),
    (AlarmKind.OTHER_BYTES, "unknown", altered(ExecutionStatus.UNKNOWN)),
    (AlarmKind.WITHOUT_VOTES, "queued", unvoted(ExecutionStatus.QUEUED)),
    (AlarmKind.WITHOUT_VOTES, "claimed", unvoted(ExecutionStatus.CLAIMED)),
    (AlarmKind.WITHOUT_VOTES, "unknown", unvoted(ExecutionStatus.UNKNOWN)),
    (AlarmKind.LATE_REPORT, "denied", denied),
)


def _new(rows: QuerySet[Execution], *kinds: AlarmKind) -> QuerySet[Execution]:
    """Exclude executions that ever had an alarm of these kinds: it was dealt with."""
    said = Alarm.objects.filter(subject=OuterRef("pk"), kind__in=kinds)
    return rows.filter(~Exists(said)).order_by()


def _promised(rows: QuerySet[Execution]) -> QuerySet[Execution]:
    # A subquery gives one value a row; an EXISTS under an OR would scan all requests.
    asked = ApprovalRequest.objects.filter(proposal=OuterRef("proposal"))
    rows = rows.annotate(asked_status=Subquery(asked.values("status")[:1]))
    return rows.filter(
        Q(announced_in__isnull=False) | Q(asked_status=RequestStatus.AUTHORIZED)
    )


def watch() -> int:
    """Raise the alarms that the searches find, and close those that no longer hold.
    Returns how many changed. Concurrent runs are safe."""
    now, changed = clock.now(), 0
    for kind, name, search in SEARCHES:
        for execution_id in search(now).values_list("pk", flat=True)[:CHUNK]:
            changed += find(kind=kind, name=name, search=search, pk=execution_id)
    for subject in after_all(now).values_list("subject", flat=True)[:CHUNK]:
        changed += ran_after_all(execution_id=subject)
    return changed + undecidable.watch()


@transaction.atomic(durable=True)
def find(*, kind: AlarmKind, name: str, search: Search, pk: str) -> bool:
    """Raise one alarm, unless the search no longer finds the execution. Returns whether
    it was raised. Raises NotFound. Locks: the grant, the execution, the alarm."""
    execution = locks.execution(pk)
    now = clock.now()
    if not search(now).filter(pk=pk).exists():
        return False
    facts = {"code": execution.code} if execution.status == "refused" else {}
    standing_about(execution, kind, now, found=name, recorded=execution.status, **facts)
    return True


@transaction.atomic(durable=True)
def ran_after_all(*, execution_id: str) -> bool:
    """Close the alarm that one effect never ran, if it has run. Returns whether it was
    closed. Raises NotFound. Locks: the grant, the execution, the alarm."""
    locks.execution(execution_id)
    now = clock.now()
    if not after_all(now).filter(subject=execution_id).exists():
        return False
    return close_itself(
        AlarmKind.NEVER_EXECUTED, subject=execution_id, now=now, code="executed"
    )
