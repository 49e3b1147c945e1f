"""One decision being made: what was said, on what, and the writes every verdict
shares. All of it happens under the request's lock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from journal import clock, log
from journal.errors import DomainError, Reauth
from policies.choices import Role
from policies.models import Person

from . import grants, leases, quorum, seen, transitions
from .choices import RequestStatus, Verdict
from .models import (
    ApprovalRequest,
    Decision,
    Lease,
    RequestVersion,
    Snapshot,
    StateReading,
)
from .seen import Sight
from .step_up import Bound, Proof

BATCH, LEASE_BROKEN = "batch", "lease_broken"


@dataclass(frozen=True, slots=True)
class Said:
    """A person's verdict with the version and bytes it was given on."""

    request_id: str
    person: Person
    verdict: Verdict
    version: int
    action_hash: str
    reason_code: str = ""
    reason: str = ""
    args: Mapping[str, Any] | None = None
    step_up: Proof | None = None  # that the person just proved to be themselves
    # The page that it was said on; None when a program said it, without any page.
    seen: Sight | None = None
    flags: tuple[str, ...] = ()
    took_ms: int | None = None  # from the page to the commit
    check: Mapping[str, Any] = field(default_factory=dict)  # question and answers
    # What the page itself has against it, once: raised when nothing else is wrong.
    objection: DomainError | None = None
    # Of a decision on many: {"batch", "digest", "position", "by", "view"}; empty when
    # alone.
    batch: Mapping[str, Any] = field(default_factory=dict)
    lease: str = ""  # the taking that the page knew of
    # Which reading of the business state was shown: 0 for the revision's own, None
    # where none was. What moved since is not decided on.
    reading: int | None = None

    @property
    def actor(self) -> log.Actor:
        return log.Actor("person", self.person.public_id)

    @property
    def commits(self) -> bool:
        """Whether the verdict lets something happen."""
        return self.verdict in {Verdict.APPROVE, Verdict.MODIFY}

    @property
    def bound(self) -> Bound:
        """What a proof of identity has to be for."""
        return Bound(
            self.person.public_id,
            self.request_id,
            self.version,
            self.action_hash,
            self.verdict,
        )

    @property
    def by(self) -> str:
        """Where it was said: only a page leaves a copy of what was shown."""
        return str(self.batch.get("by", "page" if self.seen is not None else "api"))

    @property
    def view(self) -> str:
        """The digest of that copy; of many there is one, kept with the first."""
        return self.seen.digest if self.seen else str(self.batch.get("view", ""))


@dataclass(slots=True)
class Case:
    """One decision being made: everything read after the lock."""

    said: Said
    request: ApprovalRequest
    version: RequestVersion
    role: Role
    now: datetime
    lease: Lease | None = None  # locked; it ends with the decision
    reading: StateReading | None = None  # what was shown; None for the revision's own

    def given(self) -> list[int]:
        """Step indexes already filled in the request's current version."""
        return given(self.request)


def given(request: ApprovalRequest) -> list[int]:
    """Step indexes already filled in the request's current version."""
    return [
        step
        for step in Decision.objects.filter(
            request=request, version=request.version, counts=True
        ).values_list("step", flat=True)
        if step is not None
    ]


def people_of_complete_steps(
    request: ApprovalRequest, version: RequestVersion
) -> list[str]:
    """Who filled the steps that are complete: counted on, and not asked again."""
    lacking = quorum.missing(version.steps, given(request))
    votes = Decision.objects.filter(
        request=request, version=version.number, counts=True
    ).select_related("reviewer")
    return [
        vote.reviewer.public_id
        for vote in votes
        if vote.step is not None and not lacking[vote.step]
    ]


def write(case: Case, *, counts: int | None = None) -> Decision:
    """One decision row and its log record; the person's words only as an HMAC."""
    return write_many([(case, counts)])[0]


def write_many(votes: Sequence[tuple[Case, int | None]]) -> list[Decision]:
    """The same for many, in two statements. The second of a pair is the place that
    the vote fills, None when it fills none."""
    rows = Decision.objects.bulk_create(_row(case, place) for case, place in votes)
    pages = [case.said.seen for case, _ in votes]
    Snapshot.objects.bulk_create(
        seen.snapshot(row, page)
        for row, page in zip(rows, pages, strict=True)
        if page is not None
    )
    log.append_many(_recorded(case, place) for case, place in votes)
    for case, _ in votes:
        leases.settle(case.lease, case.request)
    return rows


def _held(case: Case) -> dict[str, str]:
    """Under which taking it was decided, for whoever comes after it lapsed."""
    mine = case.lease is not None and case.lease.holder_id == case.said.person.pk
    return {"lease": case.lease.token} if case.lease is not None and mine else {}


def _row(case: Case, counts: int | None) -> Decision:
    said, request = case.said, case.request
    return Decision(
        request=request,
        version=request.version,
        reviewer=said.person,
        verdict=said.verdict,
        counts=counts is not None,
        step=counts,
        reason_code=said.reason_code,
        reason=said.reason,
        action_hash=said.action_hash,
        authority={
            "role": case.role,
            "queue": request.queue.name,
            "step_up": said.step_up.method if said.step_up else "",
            "by": said.by,
            **_held(case),
            **said.batch,
        },
        reading=case.reading,
        flags=flags_of(case),
        took_ms=said.took_ms,
        check_asked=dict(said.check),
        at=case.now,
    )


def _recorded(case: Case, counts: int | None) -> log.Entry:
    said = case.said
    more: dict[str, Any] = {}
    if said.batch:
        more["batch"] = said.batch["batch"]
    if said.view:
        more["view"] = said.view
    if flags_of(case):
        more["flags"] = flags_of(case)
    return log.Entry(
        "decision.recorded",
        actor=case.said.actor,
        at=case.now,
        verdict=case.said.verdict,
        data={
            "reason_code": case.said.reason_code,
            "counts": counts is not None,
            "by": said.by,
            **more,
        },
        private={"reason": case.said.reason},
        **transitions.request.context(case.request),
    )


def check_step_up(said: Said, now: datetime) -> None:
    """That this very verdict was proved, just now, by somebody who still can [I16].

    Raises Reauth. Caller holds the request's lock and read the person after it.
    """
    proof = said.step_up
    if proof is None or not proof.holds(said.bound, now):
        raise Reauth
    if not said.person.has_usable_password():
        raise Reauth("You have no password to confirm it with. Nothing was decided.")


def flags_of(case: Case) -> list[str]:
    """What else is true of the decision, for lists, filters and figures."""
    said = case.said
    broken = leases.was_broken(case.lease, said.person)
    ours = [(BATCH, bool(said.batch)), (LEASE_BROKEN, broken)]
    return [*(flag for flag, holds in ours if holds), *said.flags]


def note(
    case: Case,
    kind: str,
    *,
    data: Mapping[str, Any],
    private: Mapping[str, Any] | None = None,
) -> None:
    log.append(
        kind,
        actor=case.said.actor,
        at=case.now,
        verdict=case.said.verdict,
        data=data,
        private=private,
        **transitions.request.context(case.request),
    )


def tally(case: Case, given: Sequence[int]) -> None:
    """Close the question once every step has its people. Caller wrote the vote, and
    `given` are all places that are filled, theirs too."""
    if not quorum.complete(case.version.steps, given):
        close_to_voter(case)
        return
    seconds = case.version.recall_seconds
    if seconds == 0:
        authorize(case.request, actor=case.said.actor, now=case.now, guard=still(case))
        return
    until = case.now + timedelta(seconds=seconds)
    transitions.request.apply(
        case.request,
        "hold",
        actor=case.said.actor,
        now=case.now,
        changes={"recall_until": until},
        guard=still(case),
    )


def close_to_voter(case: Case) -> None:
    """They voted and it still waits: lists no longer offer it to them."""
    request, voter = case.request, case.said.person.public_id
    if voter not in request.closed_to:
        request.closed_to = [*request.closed_to, voter]
        found = ApprovalRequest.objects.filter(pk=request.pk)
        found.update(closed_to=request.closed_to)


def still(case: Case) -> Q:
    """The decision's guard: version, bytes and the deadline by the database's clock."""
    return unchanged(case.request)


def unchanged(request: ApprovalRequest) -> Q:
    """That the row still is as it was read, and in time."""
    guard = Q(version=request.version, action_hash=request.action_hash)
    if request.status == RequestStatus.PENDING:
        guard &= Q(expires_at__gt=clock.ClockTimestamp())
    return guard


def authorize(
    request: ApprovalRequest,
    *,
    actor: log.Actor,
    now: datetime,
    guard: Q | None = None,
) -> None:
    """The question is answered yes: grant and execution. Caller holds its lock."""
    revision = request.sealed.revision
    transitions.request.apply(
        request,
        "authorize",
        actor=actor,
        now=now,
        changes={"settled_at": now, "recall_until": None},
        guard=guard,
        policy=revision.policy_number,
    )
    grants.issue(request.proposal, revision, actor=actor, now=now, request=request)
