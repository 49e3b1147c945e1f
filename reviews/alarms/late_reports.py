"""Late reports: store what is reported about an effect too late to count, and decide
which alarm it causes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from journal import log
from policies.choices import ExecutionClass
from reviews.choices import (
    IN_FLIGHT,
    SETTLED_BY_LOOK_UP,
    SETTLED_BY_PERSON,
    AlarmKind,
    ExecutionStatus,
    GrantStatus,
)
from reviews.models import Alarm, Execution, LateReport

from .standing import is_same_effect, raise_execution_alarm

MAX_KEPT_REPORTS = 50  # late reports of one execution; more would tell nothing new
# An alarm of one of these kinds already covers a late report of the same execution.
ABOUT_REPORTS = (
    AlarmKind.LATE_REPORT,
    AlarmKind.TWICE,
    AlarmKind.WITHOUT_GRANT,
    AlarmKind.OTHER_BYTES,
)
SETTLED_BY_OTHERS = {SETTLED_BY_PERSON, SETTLED_BY_LOOK_UP}
_IDENTITY_FIELDS = ("fence", "status", "action_hash", "result_digest", "code")


def record_report(
    execution: Execution,
    *,
    columns: Mapping[str, Any],
    actor: log.Actor,
    now: datetime,
    counted: bool = False,
) -> bool:
    """Store a report and raise the alarm that it causes, unless it tells nothing new.
    Returns whether it only repeats what is recorded under its fence. `columns` are
    those of the report; `counted` means that it also became the recorded outcome.
    Caller holds the execution's lock, and takes no other after this."""
    report = LateReport(
        execution=execution,
        found=ExecutionStatus.CLAIMED if counted else execution.status,
        found_fence=execution.fence,
        counted=counted,
        actor_kind=actor.kind,
        actor_id=actor.id,
        at=now,
        **columns,
    )
    repeats = not counted and _matches_record(execution, report)
    if repeats or (not counted and _is_already_kept(execution, report)):
        return repeats
    report.save()
    _log_late_report(execution, report, actor)
    kind = AlarmKind.LATE_REPORT if counted else _choose_alarm_kind(execution, report)
    if kind is not None:
        raise_execution_alarm(
            execution, kind, now, **_build_alarm_data(execution, report)
        )
    return False


def has_done_report(execution: Execution) -> bool:
    """Whether a report of success came too late to count."""
    return execution.late_reports.filter(status="succeeded", counted=False).exists()


def has_unanswered_report(execution: Execution) -> bool:
    """Whether a late report says that it happened, and no person has closed its alarm
    since. A caller that acts on the answer holds the execution's lock."""
    return select_unanswered_reports().filter(execution=execution).exists()


def select_unanswered_reports() -> QuerySet[LateReport]:
    """Late reports of success, of all executions, whose alarm no person has closed
    since."""
    closed = Alarm.objects.filter(
        subject=OuterRef("execution"),
        kind__in=ABOUT_REPORTS,
        closed_by__isnull=False,
        closed_at__gte=OuterRef("at"),
    )
    return LateReport.objects.filter(~Exists(closed), status="succeeded", counted=False)


def _matches_record(execution: Execution, report: LateReport) -> bool:
    """Whether the holder of the last attempt only repeats its report. An outcome that a
    person or a look-up recorded is not its report."""
    return (
        execution.code not in SETTLED_BY_OTHERS
        and report.fence == execution.fence
        and report.status == execution.status
        and report.action_hash == execution.grant.action_hash
        and (
            report.status != "succeeded"
            or report.result_digest == execution.result_digest
        )
    )


def _is_already_kept(execution: Execution, report: LateReport) -> bool:
    same = {name: getattr(report, name) for name in _IDENTITY_FIELDS}
    reports = execution.late_reports
    return reports.filter(**same).exists() or reports.count() >= MAX_KEPT_REPORTS


def _choose_alarm_kind(execution: Execution, report: LateReport) -> AlarmKind | None:
    """The most serious alarm kind that the report causes; None when it is harmless."""
    if report.action_hash != execution.grant.action_hash:
        return AlarmKind.OTHER_BYTES
    if report.status != "failed" and not _may_have_begun(execution, report.fence):
        return AlarmKind.WITHOUT_GRANT
    if _is_second_success(execution, report):
        return AlarmKind.TWICE
    harmless = report.actor_kind == "system" and _is_harmless(execution, report)
    return None if harmless else AlarmKind.LATE_REPORT


def _may_have_begun(execution: Execution, fence: int) -> bool:
    refused = execution.status == ExecutionStatus.REFUSED and fence == execution.fence
    return (
        execution.grant.status == GrantStatus.SPENT
        and 1 <= fence <= execution.fence
        and not refused
    )


def _is_second_success(execution: Execution, report: LateReport) -> bool:
    """Whether it reports a second effect beside the success of another attempt. A
    success that a look-up or a person recorded is not an effect of its own."""
    return (
        report.status == "succeeded"
        and execution.status == ExecutionStatus.SUCCEEDED
        and not execution.looked_up
        and execution.code not in SETTLED_BY_OTHERS
        and not is_same_effect(execution, report)
    )


def _is_harmless(execution: Execution, report: LateReport) -> bool:
    """Whether a delayed worker reports nothing new, or a later attempt will look it up
    anyway; if that finds nothing, the alarm sweep raises the alarm."""
    if report.status != "succeeded":
        return execution.status != ExecutionStatus.UNKNOWN
    if execution.status in IN_FLIGHT:
        return execution.execution_class is not ExecutionClass.OPAQUE
    return execution.status == ExecutionStatus.SUCCEEDED


def _build_alarm_data(execution: Execution, report: LateReport) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "reported": report.status,
        "recorded": execution.status,
        "fence": report.fence,
        "last_fence": execution.fence,
        "taken": report.counted,
    }
    if report.action_hash != execution.grant.action_hash:
        facts["granted_hash"] = execution.grant.action_hash
        facts["reported_hash"] = report.action_hash
    return facts


def _log_late_report(
    execution: Execution, report: LateReport, actor: log.Actor
) -> None:
    proposal = execution.grant.proposal
    log.append(
        "execution.reported_late",
        actor=actor,
        at=report.at,
        proposal=proposal.pk,
        agent=proposal.agent,
        thread=proposal.thread,
        action_hash=execution.grant.action_hash,
        data={
            "execution": execution.pk,
            "fence": report.fence,
            "reported": report.status,
            "found": report.found,
            "same_action": report.action_hash == execution.grant.action_hash,
            "digest": report.result_digest,
            "taken": report.counted,
        },
    )
