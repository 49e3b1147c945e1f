"""What stands against a promise in the rows, whoever wrote them: the guarantee behind
what is noticed while it happens. Each search walks a partial index of what is rare, and
no further back than the horizon, so that its cost does not grow with history.

The sweep of what nobody noticed while it happened.
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
# After its window a queued execution has this long to be refused by those who do that.
GRACE = timedelta(minutes=1)
Search = Callable[[datetime], QuerySet[Execution]]


class _Hash(Func):
    """What the stored bytes hash to, as the database computes it."""

    template = "('sha256:' || encode(sha256(%(expressions)s), 'hex'))"
    output_field = TextField()


class _LacksVotes(Func):
    """Whether the votes that a request asks for are not there: migration 0014."""

    function = "reviews_lacks_votes"
    output_field = BooleanField()


def refused(now: datetime) -> QuerySet[Execution]:
    """Approved, and refused before it ran."""
    found = Execution.objects.filter(
        status=ExecutionStatus.REFUSED, finished_at__gt=now - HORIZON
    ).exclude(code__in=DELIBERATE)
    return _promised(_new(found, AlarmKind.NEVER_EXECUTED))


def stuck(now: datetime) -> QuerySet[Execution]:
    """Approved, and still queued after its window; but what came back with a backup
    may have run, and is never said not to have."""
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
    """It began, and its grant was never spent for it."""
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
    """The stored bytes of what is under way are no longer those that were granted, or
    not those that the log records."""

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
    """What people were asked about is under way, and their votes are not there."""

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
    """A lost attempt says that it happened, nobody else found it, and nobody has dealt
    with that since."""
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
    """Said to be never executed, and by now it is."""
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
    """Without those that such an alarm was ever raised about: it was dealt with."""
    said = Alarm.objects.filter(subject=OuterRef("pk"), kind__in=kinds)
    return rows.filter(~Exists(said)).order_by()


def _promised(rows: QuerySet[Execution]) -> QuerySet[Execution]:
    # One value for each row: an EXISTS under an OR would read every request there is.
    asked = ApprovalRequest.objects.filter(proposal=OuterRef("proposal"))
    rows = rows.annotate(asked_status=Subquery(asked.values("status")[:1]))
    return rows.filter(
        Q(announced_in__isnull=False) | Q(asked_status=RequestStatus.AUTHORIZED)
    )


def watch() -> int:
    """Raise what stands in the rows, and close what holds no more; how many. Safe to
    run any number of times at once."""
    now, changed = clock.now(), 0
    for kind, name, search in SEARCHES:
        for execution_id in search(now).values_list("pk", flat=True)[:CHUNK]:
            changed += find(kind=kind, name=name, search=search, pk=execution_id)
    for subject in after_all(now).values_list("subject", flat=True)[:CHUNK]:
        changed += ran_after_all(execution_id=subject)
    return changed + undecidable.watch()


@transaction.atomic(durable=True)
def find(*, kind: AlarmKind, name: str, search: Search, pk: str) -> bool:
    """Raise one, unless it was raised or ceased to be meanwhile. Raises NotFound."""
    execution = locks.execution(pk)
    now = clock.now()
    if not search(now).filter(pk=pk).exists():
        return False
    facts = {"code": execution.code} if execution.status == "refused" else {}
    standing_about(execution, kind, now, found=name, recorded=execution.status, **facts)
    return True


@transaction.atomic(durable=True)
def ran_after_all(*, execution_id: str) -> bool:
    """Let the alarm close itself. Raises NotFound."""
    locks.execution(execution_id)
    now = clock.now()
    if not after_all(now).filter(subject=execution_id).exists():
        return False
    return close_itself(
        AlarmKind.NEVER_EXECUTED, subject=execution_id, now=now, code="executed"
    )
