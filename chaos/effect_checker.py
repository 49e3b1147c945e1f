"""Whether any effect was lost, doubled, or done without authority for its bytes.

The gate's rows are compared with what the services say happened. Each request must have
ended as its kind calls for and as its agent was told, and no alarm may say that the
gate broke a promise.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Container, Mapping, Sequence

from django.db.models import Q

from journal import canonical, clock
from journal.models import OutboxMessage
from reviews.choices import (
    ENDED,
    EXECUTION_SPECS,
    REQUEST_SPECS,
    SETTLED_BY_PERSON,
    WITHOUT_EFFECT,
    AlarmKind,
    ClosedHow,
    ExecutionStatus,
    RequestStatus,
)
from reviews.models import Alarm, ApprovalRequest, Decision, Execution, Proposal
from world.database import Ledger

from .claims import Claim, Findings
from .generator import ATTEMPTS, OPERATION_KINDS, Operation, read_thread
from .history import RunResult
from .run import LATER
from .services import CLASSES, Effect

X, R = ExecutionStatus, RequestStatus
DONE = frozenset({X.SUCCEEDED})
ENDS: dict[str, frozenset[str]] = {
    "reject": frozenset({R.REJECTED}),
    "expire": frozenset({R.EXPIRED}),
    "withdraw": frozenset({R.WITHDRAWN}),
    # Whoever answers is another than whoever stops it: either may come first.
    "stop": frozenset({R.WITHDRAWN, X.REFUSED, X.SUCCEEDED}),
    "decline": frozenset({X.FAILED}),
    "again": frozenset({X.FAILED, X.SUCCEEDED}),
}
NEVER_RUNS = {"reject", "expire", "withdraw"}
# What nobody knows, and what a person or the service said of it later.
DOUBTED = frozenset({X.UNKNOWN, X.FAILED, X.SUCCEEDED})
TRIED_OUT = "tried_out"  # no try left, and its service knows nothing of it
SAYS = {
    "blocked": "blocked",
    **{status: spec.api_word for status, spec in EXECUTION_SPECS.items()},
    **{status: spec.api_word for status, spec in REQUEST_SPECS.items()},
}
# A worker that slept through its lease (`belied` below); what stood still while a
# server was down, and ran after all.
EXPECTED = Q(kind=AlarmKind.LATE_REPORT) | Q(
    kind=AlarmKind.NEVER_EXECUTED, closed_how=ClosedHow.ITSELF
)


class EndFindings(Findings):
    """How the requests of a quiet run ended."""

    def __init__(self) -> None:
        self.unasked = Claim("requests that ended as nobody asked")
        self.otherwise = Claim("ends told to an agent otherwise")
        self.alarming = Claim("alarms of a broken promise")

    def check_end(self, row: Proposal, heard: str | None) -> None:
        """`heard` is the last that its agent heard."""
        status, execution = read_end(row)
        doubted = _was_doubted(execution)
        self.unasked.n += 1
        if status not in _list_allowed(row, doubted=doubted):
            self.unasked.fail(f"{row.thread}: {status}")
        if heard is None:
            return
        self.otherwise.n += 1
        words = {SAYS[status]} | ({SAYS[X.UNKNOWN]} if doubted else set())
        if heard not in words:
            self.otherwise.fail(f"{row.thread}: {status}, and its agent heard {heard}")


def check_ends(heard: Mapping[str, str], given_up: Container[str] = ()) -> EndFindings:
    """Check how the requests of a quiet run ended.

    `heard` is the last that agents heard, by proposal; `given_up` are threads whose
    agent or person went away before the end.
    """
    ends, excused = EndFindings(), set()
    for row in _load_proposals():
        _, execution = read_end(row)
        if row.thread in given_up or (execution and execution.code == TRIED_OUT):
            excused.add(row.pk)
        else:
            ends.check_end(row, heard.get(row.pk))
    ends.alarming.n = ends.unasked.n
    for alarm in Alarm.objects.exclude(EXPECTED).exclude(proposal__in=excused):
        ends.alarming.fail(f"{alarm.kind}: {alarm.subject}")
    return ends


def _load_proposals() -> Sequence[Proposal]:
    rows = Proposal.objects.select_related("request").prefetch_related("executions")
    return list(rows)


def read_end(row: Proposal) -> tuple[str, Execution | None]:
    """The status of a proposal, and the execution that has it."""
    executions = list(row.executions.all())
    if executions:
        return str(executions[-1].status), executions[-1]
    request = getattr(row, "request", None)
    return ("blocked" if request is None else str(request.status)), None


def _list_allowed(row: Proposal, *, doubted: bool) -> frozenset[str]:
    number, kind = read_thread(row.thread)
    assert kind in OPERATION_KINDS, row.thread
    allowed = ENDS.get(kind, DONE)
    if kind == "recall" and row.request.version > 1:
        allowed = ENDS["reject"]
    if kind == "stop" and number % 2:  # no reviewer answers it
        allowed = ENDS["withdraw"]
    if kind not in NEVER_RUNS and doubted:
        allowed |= DOUBTED
    return allowed


def _was_doubted(execution: Execution | None) -> bool:
    return execution is not None and execution.unknown_at is not None


ALLOWED_ALONE = {"auto", "notify"}


class EffectFindings(Findings):
    """What happened, beside what was asked and allowed."""

    def __init__(self) -> None:
        self.lost = Claim("requests lost, or without an end")
        self.unwanted = Claim("proposals that nobody was told of")
        # For each class of tools: one bounds nothing of another.
        self.doubled = {
            way: Claim(f"effects doubled, {way} tools")
            for way in sorted({*CLASSES.values()})
        }
        self.unauthorised = Claim("effects without an approval for these bytes")
        self.undone = Claim("promises of the outbox not kept")
        self.outcomes: Counter[str] = Counter()
        self.by_class: dict[str, Counter[str]] = {}
        self.proposals = 0
        self.effects = 0
        self.given_up = 0  # keyed or queryable, and no try left
        # A person said no, then a sleeper did it, and an alarm says so.
        self.belied = 0

    def check_proposals(self, result: RunResult, operations: list[Operation]) -> None:
        """Every operation has its one proposal, and every proposal came to an end."""
        answered = result.history.answered
        known = {row.pk: row for row in _load_proposals()}
        self.proposals = self.undone.n = len(known)
        self.lost.n = self.unwanted.n = len(operations)
        for operation in operations:
            if operation.key not in answered:
                self.lost.fail(f"{operation.thread}: never taken")
        for key, pk in answered.items():
            if pk not in known:
                self.lost.fail(f"{key}: {pk} is not there")
        for pk in known.keys() - set(answered.values()):
            self.unwanted.fail(f"{known[pk].thread}: {pk}")
        for row in known.values():
            self._check_ended(row)

    def _check_ended(self, row: Proposal) -> None:
        status, execution = read_end(row)
        self.outcomes[status] += 1
        request: ApprovalRequest | None = getattr(row, "request", None)
        if execution is not None:
            if status not in ENDED:
                self.lost.fail(f"{row.thread}: execution {status}")
        elif request is not None and (
            request.settled_at is None or status == RequestStatus.AUTHORIZED
        ):
            self.lost.fail(f"{row.thread}: request {status}, no execution")

    def check_effects(self, effects: list[Effect]) -> None:
        """Compare the effects with what was allowed and with the gate's executions."""
        self.effects = self.unauthorised.n = len(effects)
        by_key: dict[str, list[Effect]] = defaultdict(list)
        for effect in effects:
            by_key[effect.key].append(effect)
        rows = Execution.objects.select_related("grant__revision", "proposal")
        executions = {row.idempotency_key: row for row in rows}
        for key, several in by_key.items():
            if len(several) > 1:
                self._double(several[0].tool, f"{key}: {len(several)} effects")
            if key not in executions:
                self.unauthorised.fail(f"{key}: no execution has this key")
        for key, execution in executions.items():
            self._check_execution(execution, by_key.get(key, []))

    def _check_execution(self, execution: Execution, effects: list[Effect]) -> None:
        tool = execution.proposal.tool_name
        way, status, count = CLASSES[tool], execution.status, len(effects)
        self.by_class.setdefault(way, Counter())[f"{status}, {count} effects"] += 1
        self.doubled[way].n += 1
        name = f"{execution.proposal.thread} ({way}) {status}"
        if status == ExecutionStatus.SUCCEEDED and count == 0:
            self.lost.fail(f"{name}: no effect")
        if status in WITHOUT_EFFECT and count:
            if _is_belied(execution, effects):
                self.belied += 1
            else:
                self._double(tool, f"{name}: {count} effects")
        # An outcome may stay unknown for an opaque tool, or when no try is left.
        if status == ExecutionStatus.UNKNOWN and way != "opaque":
            if execution.attempts >= ATTEMPTS:
                self.given_up += 1
            else:
                self.lost.fail(f"{name}: could have been known ({execution.code})")
        for effect in effects:
            if problem := _find_problem(execution, effect):
                self.unauthorised.fail(f"{name}: {problem}")

    def _double(self, tool: str, sentence: str) -> None:
        self.doubled[CLASSES[tool]].fail(f"{sentence} of {tool}")

    def check_outbox(self) -> None:
        """Every outbox message is done, but for mails of a later time."""
        waiting = OutboxMessage.objects.filter(done_at=None)
        for message in waiting.exclude(held_until__gt=clock.now() + LATER):
            self.undone.fail(f"{message.topic} {message.subject}")


def check_effects(
    result: RunResult, operations: list[Operation], ledger: Ledger
) -> EffectFindings:
    """Check a quiet run."""
    findings = EffectFindings()
    findings.check_proposals(result, operations)
    findings.check_effects(ledger.load(Effect))
    findings.check_outbox()
    return findings


def _is_belied(execution: Execution, effects: list[Effect]) -> bool:
    """A worker slept between its last look at the lease and its call of an opaque tool,
    which nothing can prevent; a person had answered meanwhile that it had not happened,
    which was true. Once it said what it had done, people were told."""
    if execution.code != SETTLED_BY_PERSON or execution.finished_at is None:
        return False
    answered = execution.finished_at.timestamp()
    alarms = Alarm.objects.filter(kind=AlarmKind.LATE_REPORT, subject=execution.pk)
    return alarms.exists() and [effect.at > answered for effect in effects] == [True]


def _find_problem(execution: Execution, effect: Effect) -> str:
    """Why there was no authority for this effect; empty when there was."""
    grant = execution.grant
    revision = grant.revision
    if canonical.digest(bytes(revision.canonical)) != revision.action_hash:
        return "the stored bytes have another hash"
    if grant.action_hash != revision.action_hash:
        return "the grant is for another action"
    if json.dumps(revision.args, sort_keys=True) != effect.args:
        return "done with other arguments"
    request = ApprovalRequest.objects.filter(proposal=execution.proposal_id).first()
    if request is None:
        alone = revision.tier in ALLOWED_ALONE
        return "" if alone else f"tier {revision.tier} and nobody was asked"
    return _unapproved(request, grant.action_hash, effect.at)


def _unapproved(request: ApprovalRequest, action_hash: str, at: float) -> str:
    """Enough different people said yes to these bytes before it happened."""
    if request.status != RequestStatus.AUTHORIZED:
        return f"request {request.status}"
    version = request.versions.get(number=request.version)
    if version.revision.action_hash != action_hash:
        return "authorised for another action"
    votes = Decision.objects.filter(
        request=request, version=request.version, counts=True
    ).select_related("reviewer")
    people = {vote.reviewer.public_id for vote in votes} | set(version.carried)
    needed = sum(step["required"] for step in version.steps) + len(version.carried)
    if len(people) < needed:
        return f"{len(people)} of {needed} approvals"
    late = [vote for vote in votes if vote.at.timestamp() > at]
    return "approved after it happened" if late else ""
