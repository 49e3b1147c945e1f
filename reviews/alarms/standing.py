"""Raise alarms and close them.

An alarm is raised in the transaction that finds the problem, and closed automatically
once the problem is gone. A supervisor acknowledges an alarm and closes it with a note.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import Exists, F, OuterRef, QuerySet, TextField, Value
from django.db.models.functions import Concat

from journal import canonical, clock, log
from journal.errors import Conflict, NotPermitted, TextMissing, build_field_error
from journal.operations import operation
from policies.choices import ExecutionClass
from policies.models import Person
from policies.people import build_actor
from reviews import locks, permissions, transitions
from reviews.choices import (
    AlarmKind,
    AlarmStatus,
    ClosedHow,
    GrantStatus,
    RequestStatus,
)
from reviews.models import Alarm, ApprovalRequest, Execution, LateReport, Proposal
from reviews.roles import Permission

CHUNK = 100  # alarms that one sweep raises or closes


def check_may_answer(person: Person, alarm: Alarm) -> None:
    """Check that this person is a supervisor of the alarm's queue, or any supervisor
    for an alarm without a queue. Raises NotPermitted."""
    permissions.check_permission(person, Permission.ANSWER_ALARMS)
    if alarm.queue_id and alarm.queue_id not in permissions.queues_of(person):
        raise NotPermitted("You are not admitted to this queue. Nothing was recorded.")


@operation(locks="alarm", writes="Alarm", logs="alarm.acknowledged", after="wake-up")
def acknowledge_alarm(*, alarm_id: int, person: Person) -> Alarm:
    """Acknowledge an open alarm: this person looks into it. Raises NotFound,
    NotPermitted, Conflict."""
    alarm = locks.lock_alarm(alarm_id)
    check_may_answer(person, alarm)
    if alarm.status != AlarmStatus.OPEN:
        raise Conflict(
            "Someone else acknowledged this alarm first. Nothing was changed."
        )
    now = clock.now()
    changes = {"acknowledged_by": person, "acknowledged_at": now}
    _apply_transition(alarm, "acknowledge", person, now, changes)
    return alarm


@operation(locks="alarm", writes="Alarm", logs="alarm.closed", after="wake-up")
def close_alarm(*, alarm_id: int, person: Person, note: str, shown: str = "") -> Alarm:
    """Close an alarm with a note on what it was and what was done about it. `shown` is
    the `canonical.format_shown` of what the person read; empty without a page. Raises
    NotFound, NotPermitted, TextMissing without a note, Conflict, StaleVersion."""
    alarm = locks.lock_alarm(alarm_id)
    check_may_answer(person, alarm)
    note = note.strip()
    if not note:
        raise TextMissing(errors=[build_field_error("note", "describe what you found")])
    if alarm.status == AlarmStatus.CLOSED:
        raise Conflict("This alarm is already resolved. Your note was not recorded.")
    lost = "Your note was not recorded."
    canonical.check_shown(shown, build_shown_alarm(alarm), lost)  # guard: alarm-shown
    now = clock.now()
    changes = {
        "closed_by": person,
        "closed_at": now,
        "closed_how": ClosedHow.PERSON,
        "note": note,
    }
    _apply_transition(alarm, "close", person, now, changes, private={"note": note})
    return alarm


def build_shown_alarm(alarm: Alarm) -> dict[str, object]:
    """The parts of an alarm that its form is bound to: somebody who closes it says that
    they know of all of them."""
    reports = LateReport.objects.filter(execution=alarm.subject)
    return {
        "its status": [alarm.status, alarm.acknowledged_by_id],
        "how often it was raised": alarm.times,
        "its facts": alarm.data,
        "its reports": reports.count(),
    }


def _apply_transition(
    alarm: Alarm,
    event: str,
    person: Person,
    now: datetime,
    changes: dict[str, Any],
    private: dict[str, str] | None = None,
) -> None:
    transitions.alarm.apply(
        alarm,
        event,
        actor=build_actor(person),
        now=now,
        changes=changes,
        data=_build_log_data(alarm),
        private=private,
    )


WATCH_ACTOR = log.Actor("system", "watch")


def raise_alarm(
    kind: AlarmKind,
    *,
    subject: str,
    proposal: Proposal | None,
    data: Mapping[str, Any],
    now: datetime,
    actor: log.Actor = WATCH_ACTOR,
    of_queue: bool = True,
) -> Alarm:
    """Raise an alarm, which notifies people once: if the same alarm is still open, this
    only counts the repetition. The alarm belongs to the proposal's queue; without
    `of_queue` it belongs to all supervisors. `data` holds facts and codes, never a
    person's or an agent's words. Caller holds a transaction, and takes no other lock
    after this."""
    standing = locks.lock_standing_alarm(kind, subject)
    if standing is not None:
        return _repeat_alarm(standing, now, actor)
    alarm = Alarm(
        kind=kind,
        subject=subject,
        proposal=proposal,
        queue_id=_find_queue(proposal) if of_queue else None,
        data=dict(data),
        opened_at=now,
        last_seen_at=now,
    )
    log_data = _build_log_data(alarm) | {"facts": dict(data)}
    return transitions.alarm.create(alarm, "raise", actor=actor, now=now, data=log_data)


def _repeat_alarm(alarm: Alarm, now: datetime, actor: log.Actor) -> Alarm:
    Alarm.objects.filter(pk=alarm.pk).update(times=F("times") + 1, last_seen_at=now)
    alarm.times, alarm.last_seen_at = alarm.times + 1, now
    log.append(
        "alarm.repeated",
        actor=actor,
        at=now,
        **transitions.alarm.context(alarm),
        data=_build_log_data(alarm) | {"times": alarm.times},
    )
    return alarm


def _build_log_data(alarm: Alarm) -> dict[str, Any]:
    return {"code": str(alarm.kind), "subject": alarm.subject}


def _find_queue(proposal: Proposal | None) -> int | None:
    if proposal is None:
        return None
    asked = ApprovalRequest.objects.filter(proposal=proposal)
    queue: int | None = asked.values_list("queue_id", flat=True).first()
    tool = None if queue else proposal.current.tool
    return tool.queue_id if tool else queue


def close_resolved_alarm(
    kind: AlarmKind, *, subject: str, now: datetime, code: str
) -> bool:
    """Close an open alarm whose problem is gone; `code` says why. Returns whether there
    was one. Caller holds a transaction, and takes no other lock after this."""
    alarm = locks.lock_standing_alarm(kind, subject)
    if alarm is None:
        return False
    transitions.alarm.apply(
        alarm,
        "close",
        actor=WATCH_ACTOR,
        now=now,
        changes={"closed_at": now, "closed_how": ClosedHow.ITSELF},
        data=_build_log_data(alarm) | {"because": code},
    )
    return True


# Refusals that somebody caused on purpose: no alarm is needed.
DELIBERATE_CODES = frozenset(
    {
        "stopped",
        "taken_back",
        "withdrawn_by_agent",
        "thread_finished",
        "approval_revoked",
        "standing_revoked",
    }
)

# Refusals of what nobody allowed through Counterseal.
WITHOUT_AUTHORITY_CODES = frozenset(
    {"votes_missing", "votes_unrecorded", "standing_unrecorded"}
)


def raise_execution_alarm(
    execution: Execution, kind: AlarmKind, now: datetime, **facts: Any
) -> None:
    """Raise an alarm about an execution. Caller holds a transaction, and takes no other
    lock after this."""
    raise_alarm(
        kind,
        subject=execution.pk,
        proposal=execution.grant.proposal,
        data={"execution": execution.pk, **facts},
        now=now,
    )


def raise_for_refusal(execution: Execution, *, code: str, now: datetime) -> None:
    """Raise the alarms that a refused execution causes: an approved or announced effect
    did not run. Caller holds the execution's lock, and takes no other after this."""
    if code == "bytes_changed":
        raise_execution_alarm(execution, AlarmKind.OTHER_BYTES, now, stage="stored")
    if code in WITHOUT_AUTHORITY_CODES:
        facts = find_request_facts(execution) | {"code": code, "stage": "effect"}
        raise_execution_alarm(execution, AlarmKind.WITHOUT_VOTES, now, **facts)
    if code not in DELIBERATE_CODES and was_promised(execution):
        raise_execution_alarm(execution, AlarmKind.NEVER_EXECUTED, now, code=code)


def find_request_facts(execution: Execution) -> dict[str, Any]:
    """The request of the execution, and its version, for the facts of an alarm."""
    asked = ApprovalRequest.objects.filter(proposal=execution.proposal_id)
    row = asked.values_list("pk", "version").first()
    return dict(zip(("request", "version"), row, strict=True)) if row else {}


def was_promised(execution: Execution) -> bool:
    """Whether people approved the effect, or were notified that it runs."""
    if execution.announced_in_id is not None:
        return True
    asked = ApprovalRequest.objects.filter(proposal=execution.proposal_id)
    return asked.filter(status=RequestStatus.AUTHORIZED).exists()


def raise_for_success(execution: Execution, now: datetime) -> None:
    """Raise an alarm if a successful effect ran without a spent grant, with other
    bytes, or beside a second success. Queries the database only after a lost attempt or
    a closed window. Caller holds the execution's lock."""
    grant = execution.grant
    if grant.status != GrantStatus.SPENT:
        raise_execution_alarm(
            execution, AlarmKind.WITHOUT_GRANT, now, grant=grant.status
        )
    if canonical.digest(bytes(grant.revision.canonical)) != grant.action_hash:
        raise_execution_alarm(execution, AlarmKind.OTHER_BYTES, now, stage="recorded")
    for report in _list_rival_reports(execution):
        raise_execution_alarm(execution, AlarmKind.TWICE, now, fence=report.fence)
    if grant.expires_at <= now:
        close_resolved_alarm(
            AlarmKind.NEVER_EXECUTED, subject=execution.pk, now=now, code="executed"
        )


def _list_rival_reports(execution: Execution) -> list[LateReport]:
    """Successes that other attempts reported and that are not this same effect."""
    if execution.fence < 2 or execution.looked_up:
        return []
    rivals = execution.late_reports.filter(status="succeeded", counted=False)
    rivals = rivals.exclude(fence=execution.fence)
    return [report for report in rivals if not is_same_effect(execution, report)]


def is_same_effect(execution: Execution, report: LateReport) -> bool:
    """Whether both describe one effect: a keyed provider gave the same answer twice."""
    tool = execution.grant.revision.known_tool
    keyed = tool.execution_class == ExecutionClass.KEYED
    return keyed and report.result_digest == execution.result_digest


def raise_for_repeated_effect(
    execution: Execution, effects: int | None, now: datetime
) -> None:
    """Raise an alarm if the service counts more than one effect under our reference;
    `effects` is None when it does not count. Caller holds the execution's lock."""
    if effects is not None and effects > 1:
        raise_execution_alarm(execution, AlarmKind.TWICE, now, count=effects)


def raise_for_missing_votes(
    request: ApprovalRequest, now: datetime, *, stage: str = "window"
) -> None:
    """Raise an alarm about a request whose votes are missing and whose recall window is
    over, or that is authorized. Caller holds the request's lock, and takes no other
    after this."""
    raise_alarm(
        AlarmKind.WITHOUT_VOTES,
        subject=f"{request.pk} v{request.version}",
        proposal=request.proposal,
        data={"request": request.pk, "version": request.version, "stage": stage},
        now=now,
    )


def exclude_alarmed_requests(
    requests: QuerySet[ApprovalRequest],
) -> QuerySet[ApprovalRequest]:
    """Exclude the requests whose current version already has an alarm about missing
    votes."""
    subject = Concat(
        OuterRef("pk"), Value(" v"), OuterRef("version"), output_field=TextField()
    )
    alarms = Alarm.objects.filter(kind=AlarmKind.WITHOUT_VOTES, subject=subject)
    return requests.filter(~Exists(alarms))


BROKER = "broker"


@operation(locks="alarm", writes="Alarm", logs="alarm.raised", after="mail")
def raise_for_dropped_messages(*, count: int) -> Alarm | None:
    """Raise an alarm that workers dropped `count` more unreadable broker messages, or
    add them to the open one; None when `count` is 0."""
    if count < 1:
        return None
    alarm = raise_alarm(
        AlarmKind.UNREADABLE,
        subject=BROKER,
        proposal=None,
        data={"messages": count},
        now=clock.now(),
    )
    if alarm.times > 1:
        alarm.data = {"messages": int(alarm.data.get("messages", 0)) + count}
        alarm.save(update_fields=["data"])
    return alarm
