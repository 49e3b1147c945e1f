"""The alarm sweep: search the rows for broken promises that were not noticed when they
happened, and requests that too few people can decide, and raise their alarms.

Each search uses a partial index over rare rows and looks back no further than HORIZON,
so its cost does not grow with history.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

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
    Value,
)

from journal import clock, restore_epochs, sweeps
from journal.operations import operation
from policies.choices import Role
from reviews import locks
from reviews.choices import (
    UNFINISHED,
    WITHOUT_EFFECT,
    AlarmKind,
    ClosedHow,
    ExecutionStatus,
    GrantStatus,
    RequestStatus,
)
from reviews.evidence import log_hashes
from reviews.governance import voters
from reviews.grants import sequence
from reviews.models import Alarm, ApprovalRequest, Execution, LateReport
from reviews.models.alarms import STANDING
from reviews.stops import scope

from .late_reports import ABOUT_REPORTS
from .standing import (
    CHUNK,
    DELIBERATE_CODES,
    close_resolved_alarm,
    exclude_alarmed_requests,
    find_request_facts,
    raise_alarm,
    raise_execution_alarm,
    raise_for_missing_votes,
)

HORIZON = timedelta(hours=24)
# After its window, a queued execution has this long to be refused before an alarm.
GRACE = timedelta(minutes=1)
# An approved execution is to begin in the first half of its window, at most this long.
TAKE_UP = timedelta(minutes=15)
# Neither status says that an attempt began.
NOT_BEGUN = {ExecutionStatus.QUEUED, ExecutionStatus.REFUSED}
AlarmSearch = Callable[[datetime], QuerySet[Execution]]


class _StoredHash(Func):
    """The action hash of the stored bytes, computed by the database."""

    template = "('sha256:' || encode(sha256(%(expressions)s), 'hex'))"
    output_field = TextField()


class _LacksVotes(Func):
    """Defined in the migration 0002_triggers."""

    function = "reviews_lacks_votes"
    output_field = BooleanField()


def select_refused(now: datetime) -> QuerySet[Execution]:
    """Executions that were approved or announced, and refused before they ran."""
    refused = Execution.objects.filter(
        status=ExecutionStatus.REFUSED, finished_at__gt=now - HORIZON
    ).exclude(code__in=DELIBERATE_CODES)
    return _filter_promised(_exclude_alarmed(refused, AlarmKind.NEVER_EXECUTED))


def select_stuck(now: datetime) -> QuerySet[Execution]:
    """Executions that were approved or announced, and are still queued after their
    window. Those that came back with a backup may have run, so they are left out."""
    until = restore_epochs.load_backup_cutoff().until
    own = Q() if until is None else Q(proposal__created_at__gte=until)
    overdue = Execution.objects.filter(
        own,
        status=ExecutionStatus.QUEUED,
        due_at__lt=now - GRACE,
        grant__expires_at__lt=now - GRACE,
    )
    return _filter_promised(_exclude_alarmed(overdue, AlarmKind.NEVER_EXECUTED))


def select_not_taken_up(now: datetime) -> QuerySet[Execution]:
    """Executions that were approved or announced, and that neither the agent nor a
    worker has begun in time. A pause and the order of a batch hold executions back on
    purpose."""
    ends = F("grant__expires_at")
    past_half = Q(due_at__lt=Value(now) + (Value(now) - ends))
    waiting = Execution.objects.filter(
        past_half | Q(due_at__lt=now - TAKE_UP),
        status=ExecutionStatus.QUEUED,
        attempts=0,
        due_at__lt=now,
        grant__expires_at__gt=now,
    )
    held_back = sequence.build_waiting_condition() | scope.build_paused_condition()
    return _filter_promised(
        _exclude_alarmed(waiting.exclude(held_back), AlarmKind.NOT_TAKEN_UP)
    )


def select_ungranted(now: datetime) -> QuerySet[Execution]:
    """Executions that began although their grant was never spent."""
    begun = Execution.objects.filter(
        ~Q(grant__status=GrantStatus.SPENT),
        grant__expires_at__gt=now - HORIZON,
        status__in=[s for s in ExecutionStatus if s not in NOT_BEGUN],
    )
    return _exclude_alarmed(begun, AlarmKind.WITHOUT_GRANT)


def build_altered_search(status: ExecutionStatus) -> AlarmSearch:
    """Build the search for unfinished executions whose stored bytes differ from those
    that were granted or logged."""

    def search(now: datetime) -> QuerySet[Execution]:
        altered = Execution.objects.annotate(
            stored=_StoredHash("grant__revision__canonical"),
            logged=log_hashes.select_logged_hash(),
        ).filter(
            ~Q(stored=F("grant__action_hash"))
            | ~Q(grant__action_hash=F("grant__revision__action_hash"))
            | ~Q(logged=F("grant__action_hash")),
            status=status,
        )
        return _exclude_alarmed(altered, AlarmKind.OTHER_BYTES)

    return search


def build_unvoted_search(status: ExecutionStatus) -> AlarmSearch:
    """Build the search for unfinished executions whose request lacks its votes."""

    def search(now: datetime) -> QuerySet[Execution]:
        asked = "proposal__request"
        unvoted = Execution.objects.annotate(
            lacks=_LacksVotes(asked, f"{asked}__version", f"{asked}__action_hash")
        ).filter(
            Q(lacks=True) | ~Q(proposal__request__status=RequestStatus.AUTHORIZED),
            status=status,
            proposal__request__isnull=False,
        )
        # Rewritten bytes are others than those in the records of their votes.
        return _exclude_alarmed(unvoted, AlarmKind.WITHOUT_VOTES, AlarmKind.OTHER_BYTES)

    return search


def select_unvoted_requests(now: datetime) -> QuerySet[ApprovalRequest]:
    """Requests that are authorized without their votes and without an execution.
    Counterseal queues one whenever it authorizes a request."""
    queued = Execution.objects.filter(proposal=OuterRef("proposal"))
    authorized = ApprovalRequest.objects.filter(
        ~Exists(queued), status=RequestStatus.AUTHORIZED, settled_at__gt=now - HORIZON
    ).annotate(lacks=_LacksVotes("pk", "version", "action_hash"))
    return exclude_alarmed_requests(authorized.filter(lacks=True)).order_by()


def select_denied(now: datetime) -> QuerySet[Execution]:
    """Executions that a late report calls done although they are recorded as failed,
    refused or unknown, and whose report no alarm covers."""
    dealt = Q(closed_at__isnull=True) | Q(closed_at__gte=OuterRef("at"))
    about = Alarm.objects.filter(
        dealt, subject=OuterRef("execution"), kind__in=ABOUT_REPORTS
    )
    reports = LateReport.objects.filter(
        ~Exists(about), at__gt=now - HORIZON, status="succeeded", counted=False
    )
    return Execution.objects.filter(
        pk__in=reports.values("execution"),
        status__in=[*WITHOUT_EFFECT, ExecutionStatus.UNKNOWN],
    ).order_by()


class Resolution(NamedTuple):
    """When an open alarm about an execution no longer holds, and the code that its log
    record then has."""

    when: Q
    code: str


RESOLUTIONS: dict[AlarmKind, Resolution] = {
    AlarmKind.NEVER_EXECUTED: Resolution(
        Q(status=ExecutionStatus.SUCCEEDED), "executed"
    ),
    AlarmKind.NOT_TAKEN_UP: Resolution(
        ~Q(status=ExecutionStatus.QUEUED) | Q(attempts__gt=0), "taken_up"
    ),
}


def select_resolved_alarms(kind: AlarmKind) -> QuerySet[Alarm]:
    """Open alarms of a kind that no longer hold."""
    about = Execution.objects.filter(RESOLUTIONS[kind].when, pk=OuterRef("subject"))
    return Alarm.objects.filter(STANDING, Exists(about), kind=kind)


SEARCHES: tuple[tuple[AlarmKind, str, AlarmSearch], ...] = (
    (AlarmKind.NEVER_EXECUTED, "refused", select_refused),
    (AlarmKind.NEVER_EXECUTED, "stuck", select_stuck),
    (AlarmKind.NOT_TAKEN_UP, "waiting", select_not_taken_up),
    (AlarmKind.WITHOUT_GRANT, "ungranted", select_ungranted),
    *((AlarmKind.OTHER_BYTES, s.value, build_altered_search(s)) for s in UNFINISHED),
    *((AlarmKind.WITHOUT_VOTES, s.value, build_unvoted_search(s)) for s in UNFINISHED),
    (AlarmKind.LATE_REPORT, "denied", select_denied),
)


def _exclude_alarmed(
    rows: QuerySet[Execution], *kinds: AlarmKind
) -> QuerySet[Execution]:
    """Exclude executions that ever had an alarm of these kinds: it was dealt with."""
    alarms = Alarm.objects.filter(subject=OuterRef("pk"), kind__in=kinds)
    return rows.filter(~Exists(alarms)).order_by()


def _filter_promised(rows: QuerySet[Execution]) -> QuerySet[Execution]:
    # A subquery gives one value a row; an EXISTS under an OR would scan all requests.
    asked = ApprovalRequest.objects.filter(proposal=OuterRef("proposal"))
    rows = rows.annotate(asked_status=Subquery(asked.values("status")[:1]))
    return rows.filter(
        Q(announced_in__isnull=False) | Q(asked_status=RequestStatus.AUTHORIZED)
    )


def sweep_alarms() -> int:
    """Raise the alarms that the searches find, and close those that no longer hold.
    Returns how many changed. Concurrent runs are safe."""
    now, changed = clock.now(), 0
    for kind, name, search in SEARCHES:
        execution_ids = search(now).values_list("pk", flat=True)[:CHUNK]
        raising = partial(raise_found_alarm, kind=kind, name=name, search=search)
        changed += sweeps.run_each(raising, execution_ids)
    unvoted = select_unvoted_requests(now).values_list("pk", flat=True)[:CHUNK]
    changed += sweeps.run_each(raise_unvoted_request, unvoted)
    for kind in RESOLUTIONS:
        over = select_resolved_alarms(kind).values_list("subject", flat=True)[:CHUNK]
        changed += sweeps.run_each(partial(close_disproved_alarm, kind=kind), over)
    return changed + sweep_undecidable()


@operation(
    locks="grant, execution, alarm",
    writes="Alarm",
    logs="alarm.raised",
    after="mail, wake-up",
)
def raise_found_alarm(
    execution_id: str, *, kind: AlarmKind, name: str, search: AlarmSearch
) -> bool:
    """Raise one alarm, unless the search no longer finds the execution. Returns whether
    it was raised. Raises NotFound."""
    execution, now = locks.lock_execution(execution_id), clock.now()
    if not search(now).filter(pk=execution_id).exists():
        return False
    facts: dict[str, Any] = {}
    if execution.status == "refused":
        facts = {"code": execution.code}
    if kind is AlarmKind.WITHOUT_VOTES:
        facts = find_request_facts(execution)
    raise_execution_alarm(
        execution, kind, now, found=name, recorded=execution.status, **facts
    )
    return True


@operation(
    locks="request, alarm", writes="Alarm", logs="alarm.raised", after="mail, wake-up"
)
def raise_unvoted_request(request_id: str) -> bool:
    """Raise the alarm about one request without its votes, unless it has them by now.
    Returns whether it was raised. Raises NotFound."""
    request, now = locks.lock_request(request_id), clock.now()
    if not select_unvoted_requests(now).filter(pk=request_id).exists():
        return False
    raise_for_missing_votes(request, now, stage="status")
    return True


@operation(
    locks="grant, execution, alarm",
    writes="Alarm",
    logs="alarm.closed",
    after="wake-up",
)
def close_disproved_alarm(execution_id: str, *, kind: AlarmKind) -> bool:
    """Close the alarm of this kind about one execution, if it no longer holds. Returns
    whether it was closed. Raises NotFound."""
    locks.lock_execution(execution_id)
    now = clock.now()
    if not select_resolved_alarms(kind).filter(subject=execution_id).exists():
        return False
    return close_resolved_alarm(
        kind, subject=execution_id, now=now, code=RESOLUTIONS[kind].code
    )


KIND = AlarmKind.UNDECIDABLE


def sweep_undecidable() -> int:
    """Raise an alarm for each request that nobody can decide, and close the alarms of
    requests that are decidable again or settled. Returns how many changed. Concurrent
    runs are safe."""
    vain = {pk: number for pk, number, _ in voters.list_undecidable_requests()}
    alarms = Alarm.objects.filter(kind=KIND)
    standing = set(alarms.filter(STANDING).values_list("subject", flat=True))
    new = sorted(vain.keys() - standing - _list_closed_by_person(vain))
    over = sorted(standing - vain.keys())
    raised = sweeps.run_each(raise_undecidable, new[:CHUNK])
    return raised + sweeps.run_each(close_undecidable, over[:CHUNK])


def _list_closed_by_person(vain: dict[str, int]) -> set[str]:
    """The requests whose alarm about exactly this version a person closed."""
    closed = Alarm.objects.filter(
        kind=KIND, subject__in=vain, closed_how=ClosedHow.PERSON
    )
    versions = closed.values_list("subject", "data__version")
    return {subject for subject, number in versions if vain[subject] == number}


@operation(
    locks="request, alarm", writes="Alarm", logs="alarm.raised", after="mail, wake-up"
)
def raise_undecidable(request_id: str) -> bool:
    """Raise the alarm for one request, unless people can decide it by now. Returns
    whether it was raised. Raises NotFound."""
    request = locks.lock_request(request_id)
    undecidable = next(voters.list_undecidable_requests(request.pk), None)
    if undecidable is None:
        return False
    _, number, lacking = undecidable
    voters_left = voters.list_voters(request.queue_id)
    raise_alarm(
        KIND,
        subject=request.pk,
        proposal=request.proposal,
        data={"version": number, "lacking": str(lacking)},
        now=clock.now(),
        # If its queue has no supervisor left, the alarm goes to all supervisors.
        of_queue=any(voter.role is Role.SUPERVISOR for voter in voters_left),
    )
    return True


@operation(locks="request, alarm", writes="Alarm", logs="alarm.closed", after="wake-up")
def close_undecidable(request_id: str) -> bool:
    """Close the alarm of one request, unless people still cannot decide it. Returns
    whether it was closed. Raises NotFound."""
    request = locks.lock_request(request_id)
    if next(voters.list_undecidable_requests(request.pk), None) is not None:
        return False
    return close_resolved_alarm(
        KIND, subject=request.pk, now=clock.now(), code=str(request.status)
    )
