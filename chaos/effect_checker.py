"""Whether any effect was lost, doubled, or done without authority for its bytes.

The gate's rows are compared with what the services say happened. Each request must have
ended as its kind calls for and as its agent was told, and no alarm may say that the
gate broke a promise.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field

from django.db.models import F, Q

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

from .delivery_checker import PostFindings
from .generator import ATTEMPTS, OPERATION_KINDS, Operation, read_thread
from .history import RunResult
from .log_checker import LogFindings, check_log
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
# A worker that slept through its lease (`belied` below); what stood still while
# a server was down, and ran after all.
EXPECTED = Q(kind=AlarmKind.LATE_REPORT) | Q(
    kind=AlarmKind.NEVER_EXECUTED, closed_how=ClosedHow.ITSELF
)


@dataclass
class EndFindings:
    """Sentences about what is wrong, and in how many it was looked for."""

    unasked: list[str] = field(default_factory=list)
    otherwise: list[str] = field(default_factory=list)
    alarming: list[str] = field(default_factory=list)
    asked: int = 0
    seen: int = 0

    @property
    def violations(self) -> dict[str, list[str]]:
        """Everything that must be empty, by its name."""
        return {
            "ends that nobody asked for": self.unasked,
            "ends told otherwise": self.otherwise,
            "alarms": self.alarming,
        }

    @property
    def claims(self) -> Iterator[tuple[str, int, int]]:
        """What must hold, on how many trials, and how often it did not."""
        asked = self.asked
        yield "requests that ended as nobody asked", asked, len(self.unasked)
        yield "ends told to an agent otherwise", self.seen, len(self.otherwise)
        yield "alarms of a broken promise", asked, len(self.alarming)


def check_ends(told: Mapping[str, str], given_up: Container[str] = ()) -> EndFindings:
    """Check how the requests of a quiet run ended.

    `told` is the last that agents heard, by proposal; `given_up` are threads whose
    agent or person went away before the end.
    """
    found, excused = EndFindings(), set()
    rows = Proposal.objects.select_related("request").prefetch_related("executions")
    for row in rows:
        status, execution = read_end(row)
        if row.thread in given_up or (execution and execution.code == TRIED_OUT):
            excused.add(row.pk)
        else:
            _judge(found, row, status, execution, told.get(row.pk))
    raised = Alarm.objects.exclude(EXPECTED).exclude(proposal__in=excused)
    found.alarming = [f"{alarm.kind}: {alarm.subject}" for alarm in raised]
    return found


def _judge(
    found: EndFindings,
    row: Proposal,
    status: str,
    execution: Execution | None,
    said: str | None,
) -> None:
    found.asked += 1
    if status not in _allowed(row, execution):
        found.unasked.append(f"{row.thread}: {status}")
    if said is None:
        return
    found.seen += 1
    words = {SAYS[status]}
    if _was_doubted(execution):
        words.add(EXECUTION_SPECS[X.UNKNOWN].api_word)
    if said not in words:
        found.otherwise.append(f"{row.thread}: {status}, and its agent heard {said}")


def read_end(row: Proposal) -> tuple[str, Execution | None]:
    """The status of a proposal, and the execution that has it."""
    executions = list(row.executions.all())
    if executions:
        return str(executions[-1].status), executions[-1]
    request = getattr(row, "request", None)
    return ("blocked" if request is None else str(request.status)), None


def _allowed(row: Proposal, execution: Execution | None) -> frozenset[str]:
    number, kind = read_thread(row.thread)
    assert kind in OPERATION_KINDS, row.thread
    allowed = ENDS.get(kind, DONE)
    if kind == "recall" and row.request.version > 1:
        allowed = ENDS["reject"]
    if kind == "stop" and number % 2:  # no reviewer answers it
        allowed = ENDS["withdraw"]
    if kind not in NEVER_RUNS and _was_doubted(execution):
        allowed |= DOUBTED
    return allowed


def _was_doubted(execution: Execution | None) -> bool:
    return execution is not None and execution.unknown_at is not None


ALLOWED_ALONE = {"auto", "notify"}


@dataclass
class EffectFindings:
    """Sentences about what is wrong, and numbers about the rest."""

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    doubled_by: Counter[str] = field(default_factory=Counter)  # class of tool
    unwanted: list[str] = field(default_factory=list)  # proposals
    unauthorised: list[str] = field(default_factory=list)
    undone: list[str] = field(default_factory=list)  # promises of the outbox
    outcomes: Counter[str] = field(default_factory=Counter)
    by_class: dict[str, Counter[str]] = field(default_factory=dict)
    proposals: int = 0
    effects: int = 0
    given_up: int = 0  # keyed or queryable, and no try left
    belied: int = 0  # a person said no, then a sleeper did it, and an alarm says so
    ends: EndFindings = field(default_factory=EndFindings)
    log: LogFindings = field(default_factory=LogFindings)
    post: PostFindings = field(default_factory=PostFindings)

    @property
    def violations(self) -> dict[str, list[str]]:
        """Everything that must be empty, by its name."""
        gaps = [f"{self.log.gaps} records"] if self.log.gaps else []
        return {
            "lost": self.lost,
            "doubled": self.doubled,
            "proposals that nobody was told of": self.unwanted,
            "illegal": self.log.illegal,
            "without authority": self.unauthorised,
            "written under an old fence": self.log.stale_written,
            "gaps in the log": gaps,
            "promises not kept": self.undone,
            **self.ends.violations,
            **self.post.violations,
        }


def check_effects(
    result: RunResult, operations: list[Operation], ledger: Ledger, post: PostFindings
) -> EffectFindings:
    """Check a quiet run; `post` are the findings about its deliveries."""
    ends = check_ends(result.history.ended, result.history.impatient)
    found = EffectFindings(log=check_log(), ends=ends, post=post)
    _lost(found, result, operations)
    _effects(found, ledger.load(Effect))
    _outbox(found)
    return found


def _lost(
    found: EffectFindings, result: RunResult, operations: list[Operation]
) -> None:
    """Every operation has its one proposal, and every proposal came to an end."""
    answered = result.history.answered
    found.lost += [
        f"{w.thread}: never taken" for w in operations if w.key not in answered
    ]
    rows = Proposal.objects.select_related("request").prefetch_related("executions")
    known = {row.pk: row for row in rows}
    found.proposals = len(known)
    found.lost += [
        f"{key}: {pk} is not there" for key, pk in answered.items() if pk not in known
    ]
    found.unwanted = [
        f"{known[pk].thread}: {pk}" for pk in known.keys() - set(answered.values())
    ]
    for row in known.values():
        found.outcomes[_end_of(found, row)] += 1


def _end_of(found: EffectFindings, row: Proposal) -> str:
    """The status that the agent reads, after a check that it is an end."""
    status, execution = read_end(row)
    request: ApprovalRequest | None = getattr(row, "request", None)
    if execution is not None:
        if status not in ENDED:
            found.lost.append(f"{row.thread}: execution {status}")
    elif request is not None and (
        request.settled_at is None or status == RequestStatus.AUTHORIZED
    ):
        found.lost.append(f"{row.thread}: request {status}, no execution")
    return status


def _effects(found: EffectFindings, effects: list[Effect]) -> None:
    """Compare the effects with what was allowed and with the gate's executions."""
    found.effects = len(effects)
    by_key: dict[str, list[Effect]] = defaultdict(list)
    for effect in effects:
        by_key[effect.key].append(effect)
    rows = Execution.objects.select_related("grant__revision", "proposal")
    executions = {row.idempotency_key: row for row in rows}
    for key, several in by_key.items():
        if len(several) > 1:
            _twice(found, several[0].tool, f"{key}: {len(several)} effects")
        if key not in executions:
            found.unauthorised.append(f"{key}: no execution has this key")
    for key, execution in executions.items():
        _of_execution(found, execution, by_key.get(key, []))


def _of_execution(
    found: EffectFindings, execution: Execution, effects: list[Effect]
) -> None:
    tool = execution.proposal.tool_name
    way, status, count = CLASSES[tool], execution.status, len(effects)
    found.by_class.setdefault(way, Counter())[f"{status}, {count} effects"] += 1
    name = f"{execution.proposal.thread} ({way}) {status}"
    if status == ExecutionStatus.SUCCEEDED and count == 0:
        found.lost.append(f"{name}: no effect")
    if status in WITHOUT_EFFECT and count:
        if _is_belied(execution, effects):
            found.belied += 1
        else:
            _twice(found, tool, f"{name}: {count} effects")
    if status == ExecutionStatus.UNKNOWN:
        _unknown(found, execution, way, name)
    for effect in effects:
        problem = _problem(execution, effect)
        if problem:
            found.unauthorised.append(f"{name}: {problem}")


def _twice(found: EffectFindings, tool: str, said: str) -> None:
    found.doubled.append(f"{said} of {tool}")
    found.doubled_by[CLASSES[tool]] += 1


def _is_belied(execution: Execution, effects: list[Effect]) -> bool:
    """A worker slept between its last look at the lease and its call of an opaque tool,
    which nothing can prevent; a person had answered meanwhile that it had not happened,
    which was true. Once it said what it had done, people were told."""
    if execution.code != SETTLED_BY_PERSON or execution.finished_at is None:
        return False
    answered = execution.finished_at.timestamp()
    told = Alarm.objects.filter(kind=AlarmKind.LATE_REPORT, subject=execution.pk)
    return told.exists() and [effect.at > answered for effect in effects] == [True]


def _unknown(found: EffectFindings, execution: Execution, way: str, name: str) -> None:
    """An outcome may stay unknown for an opaque tool, or when no try is left."""
    if way == "opaque":
        return
    if execution.attempts >= ATTEMPTS:
        found.given_up += 1
    else:
        found.lost.append(f"{name}: could have been known ({execution.code})")


def _problem(execution: Execution, effect: Effect) -> str:
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


def _outbox(found: EffectFindings) -> None:
    """Every outbox message is done, but for mails of a later time."""
    waiting = OutboxMessage.objects.filter(done_at=None)
    later = Q(held_until__gt=clock.now() + LATER, attempts=F("attempts"))
    for message in waiting.exclude(later):
        found.undone.append(f"{message.topic} {message.subject}")
