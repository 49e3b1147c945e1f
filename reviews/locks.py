"""The only module that locks the gate's rows. Locks last until the transaction ends.

Always lock in this order, so that no two operations wait for each other: Batch, Repair,
Thread, Question, ApprovalRequest by pk, a person's holds (advisory), Hold, keys of sums
(advisory), StandingGrant (advisory, then its row), Grant, Execution, Alarm (advisory,
then its row). Two exceptions need no place in the order: halting a batch is a guarded
update of its row under an execution's lock, because no transaction that locks a batch
waits for an execution; and a mail is written without any row lock. A group of the
identity provider, then people by pk, are locked before all of these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager
from datetime import date
from typing import TypeVar

from django.core.exceptions import ObjectDoesNotExist
from django.db.models import F, Model, QuerySet

from journal import clock
from journal.errors import NotFound
from journal.prepared_queries import Parameter, PreparedQuery
from policies import locks as policy_locks
from policies.models import Person, ProvisionedGroup, StandingGrant

from .choices import AlarmStatus, BatchStatus
from .models import (
    Alarm,
    ApprovalRequest,
    AuthorityChange,
    Batch,
    Dataset,
    DefectChange,
    Execution,
    Export,
    Hold,
    MetricDay,
    Question,
    Repair,
)

M = TypeVar("M", bound=Model)


def _lock_row(rows: QuerySet[M], pk: str | int) -> M:
    """Lock one of these rows. Raises NotFound."""
    try:
        return rows.select_for_update(of=("self",), no_key=True).get(pk=pk)
    except ObjectDoesNotExist:
        raise NotFound from None


def lock_due_rows(rows: QuerySet[M]) -> QuerySet[M]:
    """For a sweep: lock these rows in the order of the query, skipping locked ones."""
    return rows.select_for_update(of=("self",), no_key=True, skip_locked=True)


def _select_locked_requests() -> QuerySet[ApprovalRequest]:
    # no_key: a plain FOR UPDATE would block inserts of votes and versions.
    # guard: request-lock
    return ApprovalRequest.with_canaries.select_related(
        "proposal", "queue"
    ).select_for_update(of=("self",), no_key=True)


_REQUEST = PreparedQuery(lambda: _select_locked_requests().filter(pk=Parameter("pk")))
_REQUEST_OF_PROPOSAL = PreparedQuery(
    lambda: _select_locked_requests().filter(
        proposal_id=Parameter("proposal"), canary=False
    )
)


# A request that moved to another queue while its lock was awaited does not match the
# queue that the statement joined, so PostgreSQL leaves it out. The next statement finds
# it with its new queue.
_MOST_READINGS = 3


def _fetch_locked(
    query: PreparedQuery[ApprovalRequest], **keys: str
) -> ApprovalRequest | None:
    for _ in range(_MOST_READINGS):
        row: ApprovalRequest | None = query.fetch_first(**keys)
        if row is not None:
            return row
    return None


def lock_request(pk: str) -> ApprovalRequest:
    """Lock one request of an agent. Raises NotFound, also for a canary."""
    request = lock_request_or_canary(pk)
    if request.canary:  # guard: no-canary
        raise NotFound
    return request


def lock_request_or_canary(pk: str) -> ApprovalRequest:
    """Lock one request. For the few operations that know what to do with a canary.
    Raises NotFound."""
    request = _fetch_locked(_REQUEST, pk=pk)
    if request is None:
        raise NotFound
    return request


def lock_request_shown_to(person: Person, pk: str) -> ApprovalRequest:
    """Lock one request of an agent, or a canary of this person, for an operation that
    answers the same for both. Raises NotFound."""
    request = lock_request_or_canary(pk)
    if request.canary_for not in {"", person.public_id}:
        raise NotFound
    return request


def lock_requests(pks: Iterable[str]) -> dict[str, ApprovalRequest]:
    """Lock these requests in the order of pk; return those that exist, by pk. Canaries
    are left out."""
    locked: dict[str, ApprovalRequest] = {}
    missing = set(pks)
    for _ in range(_MOST_READINGS):
        rows = _select_locked_requests().filter(pk__in=missing, canary=False)
        locked |= {row.pk: row for row in rows.order_by("pk")}
        missing -= locked.keys()
        if not missing:
            break
    return {pk: locked[pk] for pk in sorted(locked)}


def lock_request_of_proposal(proposal: str) -> ApprovalRequest | None:
    """Lock a proposal's request; None when the proposal never needed one."""
    return _fetch_locked(_REQUEST_OF_PROPOSAL, proposal=proposal)


def lock_due_requests(
    queryset: QuerySet[ApprovalRequest],
) -> QuerySet[ApprovalRequest]:
    """For a sweep: lock these requests in the order of pk, skipping locked rows."""
    return lock_due_rows(queryset.select_related("proposal", "queue").order_by("pk"))


def lock_requests_in_order(
    queryset: QuerySet[ApprovalRequest],
) -> QuerySet[ApprovalRequest]:
    """Lock all of these requests in the order of pk, waiting for locked rows."""
    return lock_rows(queryset.order_by("pk"))


def lock_question(pk: str) -> Question:
    """Lock one question. Raises NotFound."""
    rows = Question.objects.select_related("queue", "person", "settled_by")
    return _lock_row(rows, pk)


def lock_rows(rows: QuerySet[M]) -> QuerySet[M]:
    """Lock all of these rows in the order of the query, waiting for locked ones."""
    return rows.select_for_update(of=("self",), no_key=True)


def lock_deadlines(*, shared: bool = False) -> None:
    """Lock all deadlines (advisory) before any row. Exclusive for operations that start
    or end an incident or move frozen deadlines; shared for operations that expire
    requests."""
    if shared:
        policy_locks.lock_deadlines_shared()
    else:
        policy_locks.lock_deadlines()


def lock_on_call(queue_id: int) -> None:
    """Let one person at a time plan a shift or start a drill of this queue, so that
    both are counted right (advisory)."""
    policy_locks.lock_on_call(queue_id)


def lock_holds_of_person(person: str) -> None:
    """Let this person (a public id) take one hold at a time, so the count is right."""
    policy_locks.lock_holds(person)


def lock_digest_mail(person: str) -> AbstractContextManager[None]:
    """Let one worker at a time write this person's digest mail. The caller holds no
    transaction. Raises OperationalError when the wait for the lock times out."""
    return policy_locks.lock_mails(person)


def lock_hold(request: str) -> Hold | None:
    """Lock the hold on a request; None when nobody ever held it."""
    return lock_holds([request]).get(request)


def lock_holds(requests: Collection[str]) -> dict[str, Hold]:
    """Lock the holds on these requests in the order of pk; return them by request id.
    Requests that nobody ever held are left out."""
    return {row.pk: row for row in _HOLDS.fetch_all(requests=list(requests))}


_HOLDS = PreparedQuery(
    lambda: (
        Hold.objects.select_related("request__proposal", "holder", "offered_to")
        .select_for_update(of=("self",), no_key=True)
        .filter(pk__any=Parameter("requests"))
        .order_by("pk")
    )
)


def lock_due_holds(queryset: QuerySet[Hold]) -> QuerySet[Hold]:
    """Lock these holds, skipping locked rows. Transactions that free several holds use
    this, so that two of them never wait for each other."""
    return lock_due_rows(
        queryset.select_related("request__proposal", "holder", "offered_to")
    )


def lock_batch(pk: str) -> Batch:
    """Lock one batch. Raises NotFound."""
    return _lock_row(Batch.objects.select_related("tool", "queue"), pk)


def lock_forming_batch(key: str) -> Batch | None:
    """Lock the batch of this key that still takes members; None when there is none."""
    rows = Batch.objects.filter(key=key, status=BatchStatus.FORMING)
    return rows.select_for_update(of=("self",), no_key=True).first()


def lock_export(pk: str) -> Export:
    """Lock an export of the log, so that only one job writes it. Raises NotFound."""
    return _lock_row(Export.objects.select_related("person"), pk)


def lock_dataset(pk: str) -> Dataset:
    """Lock a dataset, so that one person answers it and one job writes it. Raises
    NotFound."""
    rows = Dataset.objects.select_related("asked_by", "owner", "settled_by")
    return _lock_row(rows, pk)


def lock_defect_change(pk: int) -> DefectChange:
    """Lock a change of the library of defects, so that one person answers it. Raises
    NotFound."""
    rows = DefectChange.objects.select_related("asked_by", "settled_by")
    return _lock_row(rows, pk)


def lock_authority_change(pk: int) -> AuthorityChange:
    """Lock a change of what a person may do, so that one person answers it. Raises
    NotFound."""
    rows = AuthorityChange.objects.select_related("person", "asked_by", "settled_by")
    return _lock_row(rows, pk)


def lock_provisioned_group(public_id: str) -> ProvisionedGroup:
    """Lock a group of the identity provider, before its members. Raises NotFound."""
    row = ProvisionedGroup.objects.filter(public_id=public_id).first()
    if row is None:
        raise NotFound
    return _lock_row(ProvisionedGroup.objects.all(), row.pk)


def lock_people(pks: Collection[int]) -> list[Person]:
    """Lock these people in the order of pk, so that what they may do is computed from
    all of their groups."""
    rows = Person.objects.filter(pk__in=pks).order_by("pk")
    return list(rows.select_for_update(of=("self",), no_key=True))


def lock_repair(pk: str) -> Repair:
    """Lock a repair, before the rows that it changes. Raises NotFound."""
    return _lock_row(Repair.objects.all(), pk)


def lock_execution(pk: str) -> Execution:
    """Lock a grant, then its execution; return the execution with `grant` set. Raises
    NotFound."""
    row = _EXECUTION.fetch_first(pk=pk)
    if row is None:
        raise NotFound
    row.proposal = row.grant.revision.proposal = row.grant.proposal
    return row


def _lock_with_grant(rows: QuerySet[Execution]) -> QuerySet[Execution]:
    # PostgreSQL locks in this order: the grant, then the execution.
    # guard: execution-lock
    return rows.select_for_update(of=("grant", "self"), no_key=True)


_EXECUTION = PreparedQuery(
    lambda: _lock_with_grant(
        Execution.objects.select_related("grant__proposal", "grant__revision__tool")
    ).filter(pk=Parameter("pk"))
)


def select_usable_standing_grants(
    agent: str, thread: str, tool: str
) -> QuerySet[StandingGrant]:
    """The standing grants that a call of this tool in this run can use at the moment of
    the query, by the database's clock."""
    return StandingGrant.objects.filter(
        agent=agent,
        thread=thread,
        tool=tool,
        revoked_at__isnull=True,
        expires_at__gt=clock.ClockTimestamp(),
        uses__lt=F("budget"),
    )


def lock_standing_grants(agent: str, thread: str, tool: str) -> None:
    """Lock the issuing of standing grants for one run and tool."""
    policy_locks.lock_standing_grants(agent, thread, tool)


def lock_usable_standing_grant(
    agent: str, thread: str, tool: str
) -> StandingGrant | None:
    """Lock the one of these that ends first, if there is any."""
    grants = select_usable_standing_grants(agent, thread, tool).order_by("expires_at")
    return grants.select_for_update(no_key=True).first()


def lock_standing_grant(pk: str) -> StandingGrant:
    """Lock one standing grant. Raises NotFound."""
    return _lock_row(StandingGrant.objects.all(), pk)


def lock_metric_day(day: date) -> MetricDay | None:
    """Lock one day of the statistics; None when it is not marked."""
    return MetricDay.objects.select_for_update(no_key=True).filter(day=day).first()


def lock_alarm(pk: int) -> Alarm:
    """Lock one alarm. Raises NotFound."""
    return _lock_row(Alarm.objects.select_related("proposal"), pk)


def lock_standing_alarm(kind: str, subject: str) -> Alarm | None:
    """Lock the open or acknowledged alarm of this kind about this subject. None when
    there is none; then no other transaction can raise it until this one ends."""
    policy_locks.lock_alarm(f"{kind}|{subject}")
    standing = (
        Alarm.objects.select_related("proposal")
        .filter(kind=kind, subject=subject)
        .exclude(status=AlarmStatus.CLOSED)
    )
    return standing.select_for_update(of=("self",), no_key=True).first()
