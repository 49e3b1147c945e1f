"""The state machines of the gate: every legal transition (docs/states.md).

Only this module and `journal.state_machine` write a status. An edge names the source,
the event, the target, the log record, the outbox message and the webhook event.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from journal.state_machine import NO_SOURCE, Edge, Machine

from .choices import AlarmStatus as A
from .choices import BatchStatus as B
from .choices import ChangeStatus as C
from .choices import DatasetStatus as D
from .choices import ExecutionStatus as X
from .choices import ExportStatus as E
from .choices import GrantStatus as G
from .choices import QuestionStatus as Q
from .choices import RepairStatus as P
from .choices import RequestStatus as R
from .models import (
    Alarm,
    ApprovalRequest,
    AuthorityChange,
    Batch,
    Dataset,
    DefectChange,
    Execution,
    Export,
    Grant,
    Question,
    Repair,
)


def _build_request_context(row: ApprovalRequest) -> Mapping[str, Any]:
    return {
        "proposal": row.proposal_id,
        "agent": row.proposal.agent,
        "thread": row.proposal.thread,
        "revision": row.proposal.revision,
        "request": row.pk,
        "version": row.version,
        "action_hash": row.action_hash,
    }


def _build_request_event(row: ApprovalRequest) -> Mapping[str, Any] | None:
    if not row.proposal.has_listener:
        return None
    event = {"request": row.pk, "version": row.version}
    return {**event, "round": row.message_round} if row.message_round else event


def _build_grant_context(row: Grant) -> Mapping[str, Any]:
    return {
        "proposal": row.proposal_id,
        "agent": row.proposal.agent,
        "thread": row.proposal.thread,
        "revision": row.revision.number,
        "action_hash": row.action_hash,
    }


def _build_execution_context(row: Execution) -> Mapping[str, Any]:
    return _build_grant_context(row.grant)


def _build_execution_event(row: Execution) -> Mapping[str, Any] | None:
    if not row.grant.proposal.has_listener:
        return None
    if row.status == X.QUEUED and not row.by_agent:
        return None  # the gate retries by itself; the agent has nothing to do
    # Only the code of a refusal is ours; other codes may be text from a service.
    code = row.code if row.status == X.REFUSED else ""
    event = {"execution": row.pk, "fence": row.fence, "code": code}
    if row.status == X.QUEUED and row.retried_at is not None:
        return {**event, "again": row.retried_at.isoformat()}
    return event


def _build_batch_context(row: Batch) -> Mapping[str, Any]:
    return {"agent": row.agent}


def _build_no_context(
    row: Export | Dataset | DefectChange | AuthorityChange,
) -> Mapping[str, Any]:
    """Rows that are about no request: their log data says which they are."""
    return {}


def _build_alarm_context(row: Alarm) -> Mapping[str, Any]:
    if row.proposal is None:
        return {}
    return {
        "proposal": row.proposal.pk,
        "agent": row.proposal.agent,
        "thread": row.proposal.thread,
    }


def _build_run_context(row: Repair | Question) -> Mapping[str, Any]:
    return {"agent": row.agent, "thread": row.thread}


def _settle(source: R, event: str, target: R, logged_as: str) -> Edge:
    """An edge that settles a request: people and its agent hear of it."""
    return Edge(source, event, target, logged_as, "request.settled", "proposal.settled")


def _tell_agent(
    source: str, event: str, target: str, logged_as: str, webhook_event: str
) -> Edge:
    """An edge of which only the agent hears."""
    return Edge(source, event, target, logged_as, webhook_event=webhook_event)


request = Machine(
    "request",
    [
        Edge(
            NO_SOURCE,
            "open",
            R.PENDING,
            "request.opened",
            "request.opened",
            "request.opened",
        ),
        # A canary: its reviewer alone is notified of it, and its agent hears nothing.
        Edge(NO_SOURCE, "plant", R.PENDING, "canary.planted", "request.opened"),
        Edge(R.PENDING, "reveal", R.WITHDRAWN, "canary.revealed"),
        Edge(R.PENDING, "revise", R.PENDING, "request.revised"),
        Edge(R.RECALLABLE, "revise", R.PENDING, "request.revised"),
        Edge(R.PENDING, "modify", R.PENDING, "request.modified"),
        Edge(
            R.PENDING,
            "escalate",
            R.PENDING,
            "request.escalated",
            "request.escalated",
            "request.escalated",
        ),
        Edge(R.PENDING, "return", R.PENDING, "request.returned", "request.returned"),
        Edge(R.PENDING, "join", R.PENDING, "request.joined"),
        Edge(R.RECALLABLE, "join", R.RECALLABLE, "request.joined"),
        Edge(R.PENDING, "extend", R.PENDING, "request.extended"),
        Edge(R.PENDING, "move", R.PENDING, "request.moved", "request.moved"),
        Edge(R.PENDING, "assign", R.PENDING, "request.assigned", "request.assigned"),
        # Messages. The agent gets no event about its own.
        _tell_agent(R.PENDING, "ask", R.PENDING, "request.asked", "request.asked"),
        _tell_agent(
            R.PENDING, "answer", R.PENDING, "request.answered", "request.answered"
        ),
        _tell_agent(
            R.PENDING, "send_back", R.PENDING, "request.sent_back", "request.sent_back"
        ),
        Edge(R.PENDING, "ask_people", R.PENDING, "request.asked"),
        Edge(R.PENDING, "answer_people", R.PENDING, "request.answered"),
        Edge(R.RECALLABLE, "answer_people", R.RECALLABLE, "request.answered"),
        Edge(R.PENDING, "hold", R.RECALLABLE, "request.recallable"),
        Edge(R.RECALLABLE, "recall", R.PENDING, "request.recalled"),
        Edge(R.PENDING, "revoke", R.PENDING, "request.revoked", "request.revoked"),
        Edge(R.RECALLABLE, "revoke", R.PENDING, "request.revoked", "request.revoked"),
        _settle(R.PENDING, "authorize", R.AUTHORIZED, "request.authorized"),
        _settle(R.RECALLABLE, "authorize", R.AUTHORIZED, "request.authorized"),
        _settle(R.PENDING, "reject", R.REJECTED, "request.rejected"),
        _settle(R.RECALLABLE, "reject", R.REJECTED, "request.rejected"),
        _settle(R.PENDING, "expire", R.EXPIRED, "request.expired"),
        _settle(R.PENDING, "withdraw", R.WITHDRAWN, "request.withdrawn"),
        _settle(R.RECALLABLE, "withdraw", R.WITHDRAWN, "request.withdrawn"),
        _settle(R.PENDING, "supersede", R.SUPERSEDED, "request.superseded"),
    ],
    _build_request_context,
    _build_request_event,
)

grant = Machine(
    "grant",
    [
        Edge(NO_SOURCE, "issue", G.LIVE, "grant.issued"),
        Edge(G.LIVE, "spend", G.SPENT, "grant.spent"),
        Edge(G.LIVE, "expire", G.EXPIRED, "grant.expired"),
        Edge(G.LIVE, "revoke", G.REVOKED, "grant.revoked"),
    ],
    _build_grant_context,
)

execution = Machine(
    "execution",
    [
        Edge(NO_SOURCE, "queue", X.QUEUED, "execution.queued", "execution.queued"),
        Edge(X.QUEUED, "claim", X.CLAIMED, "execution.claimed"),
        Edge(X.CLAIMED, "reclaim", X.CLAIMED, "execution.reclaimed"),
        _tell_agent(
            X.CLAIMED,
            "succeed",
            X.SUCCEEDED,
            "execution.succeeded",
            "proposal.executed",
        ),
        _tell_agent(
            X.CLAIMED, "fail", X.FAILED, "execution.failed", "proposal.settled"
        ),
        Edge(X.CLAIMED, "requeue", X.QUEUED, "execution.requeued"),
        Edge(
            X.CLAIMED,
            "lose",
            X.UNKNOWN,
            "execution.unknown",
            "execution.unknown",
            webhook_event="execution.unknown",
        ),
        _tell_agent(
            X.QUEUED, "refuse", X.REFUSED, "execution.refused", "proposal.settled"
        ),
        _tell_agent(
            X.CLAIMED, "refuse", X.REFUSED, "execution.refused", "proposal.settled"
        ),
        Edge(
            X.FAILED,
            "retry",
            X.QUEUED,
            "execution.retried",
            "execution.queued",
            webhook_event="proposal.settled",
        ),
        _tell_agent(
            X.UNKNOWN,
            "settle_succeeded",
            X.SUCCEEDED,
            "execution.settled",
            "proposal.executed",
        ),
        _tell_agent(
            X.UNKNOWN,
            "settle_failed",
            X.FAILED,
            "execution.settled",
            "proposal.settled",
        ),
    ],
    _build_execution_context,
    _build_execution_event,
)

batch = Machine(
    "batch",
    [
        Edge(NO_SOURCE, "form", B.FORMING, "batch.formed"),
        Edge(B.FORMING, "close", B.OPEN, "batch.closed"),
        Edge(B.FORMING, "decide", B.DECIDED, "batch.decided"),
        Edge(B.OPEN, "decide", B.DECIDED, "batch.decided"),
        Edge(B.FORMING, "dissolve", B.DISSOLVED, "batch.dissolved"),
        Edge(B.OPEN, "dissolve", B.DISSOLVED, "batch.dissolved"),
    ],
    _build_batch_context,
)

export = Machine(
    "export",
    [
        Edge(NO_SOURCE, "ask", E.RUNNING, "export.asked", "export.asked"),
        Edge(E.RUNNING, "finish", E.DONE, "export.finished"),
        Edge(E.RUNNING, "fail", E.FAILED, "export.failed"),
    ],
    _build_no_context,
)

dataset = Machine(
    "dataset",
    [
        Edge(NO_SOURCE, "ask", D.ASKED, "dataset.asked"),
        Edge(
            D.ASKED,
            "consent",
            D.RUNNING,
            "dataset.consented",
            "dataset.consented",
        ),
        Edge(D.ASKED, "refuse", D.REFUSED, "dataset.refused"),
        Edge(D.ASKED, "withdraw", D.WITHDRAWN, "dataset.withdrawn"),
        Edge(D.ASKED, "lapse", D.LAPSED, "dataset.lapsed"),
        Edge(D.RUNNING, "finish", D.DONE, "dataset.finished"),
        Edge(D.RUNNING, "fail", D.FAILED, "dataset.failed"),
    ],
    _build_no_context,
)

defect_change = Machine(
    "change of the library",
    [
        Edge(NO_SOURCE, "propose", C.PROPOSED, "defect.proposed"),
        Edge(C.PROPOSED, "confirm", C.CONFIRMED, "defect.changed"),
        Edge(C.PROPOSED, "refuse", C.REFUSED, "defect.refused"),
        Edge(C.PROPOSED, "withdraw", C.WITHDRAWN, "defect.withdrawn"),
        Edge(C.PROPOSED, "lapse", C.LAPSED, "defect.lapsed"),
    ],
    _build_no_context,
)

authority_change = Machine(
    "change of a person's authority",
    [
        Edge(NO_SOURCE, "propose", C.PROPOSED, "authority.proposed"),
        Edge(C.PROPOSED, "confirm", C.CONFIRMED, "authority.confirmed"),
        Edge(C.PROPOSED, "refuse", C.REFUSED, "authority.refused"),
        Edge(C.PROPOSED, "withdraw", C.WITHDRAWN, "authority.withdrawn"),
        Edge(C.PROPOSED, "lapse", C.LAPSED, "authority.lapsed"),
    ],
    _build_no_context,
)

alarm = Machine(
    "alarm",
    [
        Edge(NO_SOURCE, "raise", A.OPEN, "alarm.raised", "alarm.raised"),
        Edge(A.OPEN, "acknowledge", A.ACKNOWLEDGED, "alarm.acknowledged"),
        Edge(A.OPEN, "close", A.CLOSED, "alarm.closed"),
        Edge(A.ACKNOWLEDGED, "close", A.CLOSED, "alarm.closed"),
    ],
    _build_alarm_context,
)

repair = Machine(
    "repair",
    [
        Edge(NO_SOURCE, "propose", P.PROPOSED, "repair.proposed"),
        Edge(P.PROPOSED, "apply", P.APPLIED, "repair.applied"),
        Edge(P.PROPOSED, "refuse", P.REFUSED, "repair.refused"),
        Edge(P.PROPOSED, "lapse", P.LAPSED, "repair.lapsed"),
    ],
    _build_run_context,
)

question = Machine(
    "question",
    [
        Edge(NO_SOURCE, "ask", Q.OPEN, "question.asked", "question.asked"),
        Edge(Q.OPEN, "answer", Q.ANSWERED, "question.answered"),
        Edge(Q.OPEN, "decline", Q.DECLINED, "question.declined"),
        Edge(Q.OPEN, "expire", Q.EXPIRED, "question.expired"),
        Edge(Q.OPEN, "withdraw", Q.WITHDRAWN, "question.withdrawn"),
    ],
    _build_run_context,
)

MACHINES = {
    Alarm: alarm,
    ApprovalRequest: request,
    Grant: grant,
    Execution: execution,
    Batch: batch,
    Export: export,
    Dataset: dataset,
    DefectChange: defect_change,
    AuthorityChange: authority_change,
    Question: question,
    Repair: repair,
}
