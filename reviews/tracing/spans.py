"""The spans of an ended proposal, built from the gate's own rows: one for the proposal,
below the agent's own span, and below it one for the approval and one for each
execution. They name no person, and no argument of the action."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from django.db.models import F
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from journal.models import LogRecord
from reviews.choices import ExecutionStatus
from reviews.models import ApprovalRequest, Execution, Proposal, Revision
from reviews.outbound.trace_context import (
    TraceParent,
    compute_span_id,
    parse_traceparent,
)

SCOPE = InstrumentationScope("counterseal")
FAILURES = frozenset({ExecutionStatus.FAILED, ExecutionStatus.UNKNOWN})


def build_spans(
    proposals: Sequence[Proposal], resource: Resource
) -> list[ReadableSpan]:
    """Build the spans of proposals that have ended. Those without a `traceparent`, and
    those whose trace nobody records, have none."""
    ids = [proposal.pk for proposal in proposals]
    revisions = {
        revision.proposal_id: revision
        for revision in Revision.objects.filter(
            proposal__in=ids, number=F("proposal__revision")
        )
    }
    requests = {
        request.proposal_id: request
        for request in ApprovalRequest.objects.filter(proposal__in=ids)
    }
    executions: defaultdict[str, list[Execution]] = defaultdict(list)
    for execution in Execution.objects.filter(proposal__in=ids).order_by("queued_at"):
        executions[execution.proposal_id].append(execution)
    events: defaultdict[str, list[Event]] = defaultdict(list)
    records = LogRecord.objects.filter(proposal__in=ids, kind__startswith="request.")
    for record in records.order_by("pk").only("kind", "at", "proposal"):
        event = Event(record.kind, timestamp=_to_nanoseconds(record.at))
        events[record.proposal].append(event)
    return [
        span
        for proposal in proposals
        for span in _build_proposal_spans(
            proposal,
            revisions[proposal.pk],
            requests.get(proposal.pk),
            executions[proposal.pk],
            events[proposal.pk],
            resource,
        )
    ]


def _build_proposal_spans(
    proposal: Proposal,
    revision: Revision,
    request: ApprovalRequest | None,
    executions: Sequence[Execution],
    events: Sequence[Event],
    resource: Resource,
) -> Iterator[ReadableSpan]:
    agent = parse_traceparent(proposal.traceparent)
    if agent is None or not agent.sampled:
        return
    ends = [execution.finished_at for execution in executions]
    ends.append(request.settled_at if request else None)
    own = TraceParent(agent.trace, compute_span_id(proposal.pk), agent.flags)
    yield _build_span(
        f"proposal {proposal.tool_name}",
        proposal.pk,
        agent,
        proposal.created_at,
        max((end for end in ends if end), default=proposal.created_at),
        {
            "counterseal.proposal": proposal.pk,
            "counterseal.agent": proposal.agent,
            "counterseal.thread": proposal.thread,
            "counterseal.tool": proposal.tool_name,
            "counterseal.revision": revision.number,
            "counterseal.risk": revision.risk,
            "counterseal.tier": revision.tier,
        },
        resource,
    )
    if request is not None and request.settled_at:
        yield _build_span(
            "approval",
            request.pk,
            own,
            request.opened_at,
            request.settled_at,
            {
                "counterseal.request": request.pk,
                "counterseal.status": request.status,
                "counterseal.version": request.version,
            },
            resource,
            events=events,
        )
    for execution in executions:
        if execution.finished_at:
            yield _build_execution_span(proposal.tool_name, execution, own, resource)


def _build_execution_span(
    tool: str, execution: Execution, parent: TraceParent, resource: Resource
) -> ReadableSpan:
    return _build_span(
        f"execution {tool}",
        execution.pk,
        parent,
        execution.queued_at,
        execution.finished_at or execution.queued_at,
        {
            "counterseal.execution": execution.pk,
            "counterseal.status": execution.status,
            "counterseal.attempts": execution.fence,
        },
        resource,
        kind=SpanKind.CLIENT,
        failed=execution.status in FAILURES,
    )


def _build_span(
    name: str,
    row: str,
    parent: TraceParent,
    start: datetime,
    end: datetime,
    attributes: Mapping[str, str | int],
    resource: Resource,
    *,
    events: Sequence[Event] = (),
    kind: SpanKind = SpanKind.INTERNAL,
    failed: bool = False,
) -> ReadableSpan:
    return ReadableSpan(
        name,
        context=_build_context(parent, compute_span_id(row)),
        parent=_build_context(parent, parent.span),
        resource=resource,
        attributes=attributes,
        events=events,
        kind=kind,
        status=Status(StatusCode.ERROR if failed else StatusCode.UNSET),
        start_time=_to_nanoseconds(start),
        end_time=_to_nanoseconds(end),
        instrumentation_scope=SCOPE,
    )


def _build_context(trace: TraceParent, span: str) -> SpanContext:
    return SpanContext(
        int(trace.trace, 16),
        int(span, 16),
        is_remote=span == trace.span,
        trace_flags=TraceFlags(trace.flags),
    )


def _to_nanoseconds(moment: datetime) -> int:
    """Nanoseconds since 1970, without the rounding of a float."""
    seconds = int(moment.replace(microsecond=0).timestamp())
    return (seconds * 1_000_000 + moment.microsecond) * 1_000
