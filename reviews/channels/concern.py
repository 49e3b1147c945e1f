"""Whether a message still concerns the person it was planned for."""

from __future__ import annotations

from django.db.models.functions import Now

from journal import clock
from policies.choices import Role
from reviews import permissions
from reviews.choices import AlarmStatus, ExecutionStatus, RequestStatus
from reviews.models import Alarm, ApprovalRequest, Execution, Lease, Notice
from reviews.notifications import schedule
from reviews.people import preferences

from . import lines


def let_go(notice: Notice) -> str:
    """Why this is nothing to this person any more, or empty."""
    if not notice.person.is_active or not notice.person.email:
        return "not_theirs"
    if notice.execution is not None:
        return _of_effect(notice, notice.execution)
    if notice.alarm is not None:
        return _of_alarm(notice, notice.alarm)
    if notice.request is None or notice.kind not in lines.WAITING:
        return ""
    return _of_question(notice, notice.request)


def queue_of(execution: Execution, kind: str) -> int:
    """Whose matter it is: of what ran without asking theirs to whom it was announced,
    of what does not run any more theirs who were asked, else the tool's own."""
    request: ApprovalRequest | None = getattr(execution.proposal, "request", None)
    if kind == "ran" and execution.announced_in_id is not None:
        return execution.announced_in_id
    if kind == "cancelled" and request is not None:
        return request.queue_id
    return execution.grant.revision.known_tool.queue_id


def _of_effect(notice: Notice, execution: Execution) -> str:
    if permissions.deciding_role(notice.person) is not Role.SUPERVISOR:
        return "not_theirs"
    theirs = permissions.queues_of(notice.person)
    if queue_of(execution, notice.kind) not in theirs:
        return "not_theirs"
    known = execution.status != ExecutionStatus.UNKNOWN
    return "settled" if notice.kind == "unknown" and known else ""


def _of_alarm(notice: Notice, alarm: Alarm) -> str:
    if permissions.deciding_role(notice.person) is not Role.SUPERVISOR:
        return "not_theirs"
    if alarm.queue_id and alarm.queue_id not in permissions.queues_of(notice.person):
        return "not_theirs"
    return "settled" if alarm.status == AlarmStatus.CLOSED else ""


def _of_question(notice: Notice, request: ApprovalRequest) -> str:
    waits = request.status == RequestStatus.PENDING and request.expires_at > clock.now()
    if not waits or request.version != notice.version:
        return "settled"
    if permissions.can_decide(notice.person, request, request.sealed):
        return "not_theirs"
    if not _still_meant(notice, request):
        return "not_theirs"
    if schedule.must(notice.kind, permissions.deciding_role(notice.person)):
        return ""
    said = preferences.of(notice.person).notifications
    late = said.mail(request.risk) == "unclaimed" and notice.kind == "opened"
    asks = (said.once_taken or late) and notice.kind not in lines.WHILE_HELD
    return "taken" if asks and _is_taken(notice, request) else ""


def _still_meant(notice: Notice, request: ApprovalRequest) -> bool:
    """Whether what was given or offered to this person still is."""
    if notice.kind == "assigned":
        return request.assignee_id == notice.person_id
    if notice.kind != "offered":
        return True
    offers = Lease.objects.filter(request=request, until__gt=Now())
    return offers.filter(offered_to=notice.person).exists()


def _is_taken(notice: Notice, request: ApprovalRequest) -> bool:
    """Whether somebody else is at it just now."""
    held = Lease.objects.filter(request=request, until__gt=Now(), holder__isnull=False)
    return held.exclude(holder=notice.person).exists()
