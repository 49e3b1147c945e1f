"""Late reports about an effect, and which failed effects a person may have tried again.

A late report arrived when it could no longer count. It settles nothing; it is evidence
for the person who has to say what happened.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef

from journal.errors import NotFound
from policies.models import Person
from reviews import permissions
from reviews.alarms import late_reports
from reviews.choices import EXECUTION_SPECS, ExecutionStatus
from reviews.effects.wording import flatten_value
from reviews.models import Execution, LateReport
from reviews.stops import scope

from . import visibility

REPORT_WORDS = {
    "succeeded": "It happened",
    "failed": "It did not happen",
    "unknown": "It may have happened",
}


@dataclass(frozen=True, slots=True)
class LateReportLine:
    """One late report. `result`, `code` and `detail` are redacted foreign text."""

    at: datetime
    agent: str  # "" for one of our own workers
    claim: str
    status: str
    fence: int
    recorded: str  # the execution's status when the report arrived, in words
    attempted: bool  # an attempt had started when the report arrived
    same_attempt: bool  # its fence was the newest when the report arrived
    same_bytes: bool  # it names the granted action hash
    counted: bool
    result: list[tuple[str, str]]
    digest: str
    code: str
    detail: str


def list_late_reports(execution: Execution) -> list[LateReportLine]:
    """The late reports of an execution, oldest first, in one query."""
    return group_late_reports([execution]).get(execution.pk, [])


def group_late_reports(
    executions: Sequence[Execution],
) -> dict[str, list[LateReportLine]]:
    """Late reports by execution id, oldest first, in one query."""
    granted = {execution.pk: execution.grant.action_hash for execution in executions}
    reports: dict[str, list[LateReportLine]] = {}
    for row in LateReport.objects.filter(execution__in=granted).order_by("at", "pk"):
        line = _build_report_line(row, granted[row.execution_id])
        reports.setdefault(row.execution_id, []).append(line)
    return reports


def _build_report_line(row: LateReport, granted: str) -> LateReportLine:
    return LateReportLine(
        at=row.at,
        agent=row.actor_id if row.actor_kind == "agent" else "",
        claim=REPORT_WORDS[row.status],
        status=row.status,
        fence=row.fence,
        recorded=EXECUTION_SPECS[row.found].recorded,
        attempted=row.found_fence > 0,
        same_attempt=row.fence == row.found_fence,
        same_bytes=row.action_hash == granted,
        counted=row.counted,
        result=list(flatten_value(row.result_shown)) if row.result_shown else [],
        digest=row.result_digest,
        code=row.code,
        detail=row.detail,
    )


def find_retryable(
    person: Person, executions: Collection[str], now: datetime
) -> set[str]:
    """Those of these execution ids that this person may have tried again now.

    The rules of `settle.retry_execution` that a query can check; the operation also
    checks whether sums have grown. At most two queries, none for a person without a
    deciding role.
    """
    if not executions or permissions.find_deciding_role(person) is None:
        return set()
    rows = Execution.objects.filter(
        pk__in=executions, status=ExecutionStatus.FAILED, grant__expires_at__gt=now
    ).filter(grant__revision__tool__queue__in=permissions.queues_of(person))
    rows = rows.exclude(batch__halted_at__isnull=False)
    rows = rows.exclude(
        Exists(
            late_reports.select_unanswered_reports().filter(execution=OuterRef("pk"))
        )
    )
    rows = rows.exclude(scope.build_stopped_condition()).exclude(
        scope.build_revoked_condition()
    )
    ids = set(rows.values_list("pk", flat=True))
    return set() if ids and permissions.is_reviewer_stopped(person) else ids


def load_execution(person: Person, pk: str) -> Execution:
    """An execution whose proposal this person may see. Raises NotFound."""
    proposals = visibility.select_visible_proposals(person).values("pk")
    rows = Execution.objects.select_related("proposal")
    execution = rows.filter(pk=pk, proposal__in=proposals).first()
    if execution is None:
        raise NotFound
    return execution
