"""Decide a batch: one verdict on every item of a list, or on none.

The list must be exactly the one that the person saw: the same items, in the same order,
each unchanged. Every item passes the checks of a single decision. The verifiers of all
items are called first, before any lock is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from journal import clock, failpoints, log, restore_epochs
from journal.errors import (
    AlreadyDecided,
    BatchChanged,
    DomainError,
    FieldError,
    InvalidInput,
    NotFound,
    PolicyViolation,
    VerifierRefused,
    build_field_error,
)
from journal.operations import operation
from policies import active, tools
from policies.models import Person
from policies.people import build_actor
from reviews import locks, transitions
from reviews.choices import VERDICT_SPECS, BatchStatus, Verdict
from reviews.decisions import checks, verdicts
from reviews.decisions.case import load_decision_facts
from reviews.decisions.preflight import Preflight, run_preflight
from reviews.decisions.submission import PageEvidence, VerdictSubmission
from reviews.decisions.votes import StepVote
from reviews.governance import readings
from reviews.models import Batch, BatchItem
from reviews.stops import incidents
from reviews.tool_services import verifiers

from . import membership, similarity
from .membership import BatchMember


@dataclass(frozen=True, slots=True)
class BatchSubmission:
    """One verdict on an exact ordered list. `left_out` names the members that the
    person saw and left out: a member in neither list joined after the page was made.
    """

    batch_id: str
    person: Person
    verdict: Verdict
    digest: str
    items: Sequence[str]
    left_out: Sequence[str] = ()
    reason_code: str = ""
    reason: str = ""
    stop_at_failure: bool = True
    # `BatchMember.mark` of each item as the page showed it; tells which items changed.
    marks: Mapping[str, str] = field(default_factory=dict)
    by: str = "api"  # or "page"
    page: PageEvidence | None = None  # one page for all items
    # By request: the samples that the page asked to open, and how they were opened.
    samples: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def actor(self) -> log.Actor:
        return build_actor(self.person)

    @property
    def view(self) -> str:
        return self.page.digest if self.page else ""


def _build_member_submission(
    submission: BatchSubmission, member: BatchMember
) -> VerdictSubmission:
    """The verdict on one item in its current state. The batch digest proves that the
    person saw this state."""
    return VerdictSubmission(
        request_id=member.id,
        person=submission.person,
        verdict=submission.verdict,
        version=member.request.version,
        action_hash=member.request.action_hash,
        reason_code=submission.reason_code,
        reason=submission.reason,
        batch={
            "batch": submission.batch_id,
            "digest": submission.digest,
            "position": member.item.position,
            "by": submission.by,
            "view": submission.view,
        },
        reading=member.reading.pk if member.reading else readings.OWN_READING,
        page=_build_member_page(submission, member),
    )


@contextmanager
def name_failing_member(member: BatchMember) -> Iterator[None]:
    """Add the item to the `errors` of any DomainError raised in the block."""
    try:
        yield
    except DomainError as error:
        error.errors.append(build_field_error(member.id, error.detail))
        raise


MAX_ITEMS = 50  # items of one decision


def check_list_unchanged(
    submission: BatchSubmission, members: Sequence[BatchMember]
) -> None:
    """Check that the list is the one the person saw: the same items, in the same order,
    each unchanged. Raises BatchChanged, InvalidInput."""
    if not submission.items or len(submission.items) > MAX_ITEMS:
        raise InvalidInput(f"Choose 1 to {MAX_ITEMS} items. Nothing was recorded.")
    changes = _collect_changes(
        submission.items, members, submission.marks, left_out=submission.left_out
    )
    _check_left_out(submission, members)
    staying = {member.id: member for member in members if not member.gone}
    ordered = [pk for pk in staying if pk in set(submission.items)]
    if not changes and ordered != list(submission.items):
        raise InvalidInput("Name each item once, in the order of the batch.")
    now = similarity.compute_list_digest(staying[pk].entry for pk in ordered)
    if changes or now != submission.digest:
        raise BatchChanged(
            _describe_changed_list(len(changes), len(submission.items)), errors=changes
        )


def _check_left_out(
    submission: BatchSubmission, members: Sequence[BatchMember]
) -> None:
    """Check that what was left out was in this batch, and is not decided as well.
    Raises InvalidInput."""
    there = {member.id for member in members}
    strange = [pk for pk in submission.left_out if pk not in there]
    if strange:  # it may have left the batch since
        once = BatchItem.objects.filter(batch=submission.batch_id, request__in=strange)
        there |= set(once.values_list("request", flat=True))
    errors = [
        build_field_error(
            f"left_out[{at}]",
            "it is among the items too: name it in one of the two lists"
            if pk in submission.items
            else "it was never in this batch: leave it out",
        )
        for at, pk in enumerate(submission.left_out)
        if pk in submission.items or pk not in there
    ]
    if errors:
        raise InvalidInput("The lists do not fit. Nothing was decided.", errors=errors)


def list_changes_since(
    marks: Mapping[str, str], members: Sequence[BatchMember]
) -> list[FieldError]:
    """List what changed in the rows of a page, ticked or not. `marks` holds each row's
    `BatchMember.mark` when the page was made."""
    return _collect_changes(list(marks), members, marks)


def _collect_changes(
    items: Sequence[str],
    members: Sequence[BatchMember],
    marks: Mapping[str, str],
    left_out: Sequence[str] = (),
) -> list[FieldError]:
    known, seen = {member.id for member in members}, set(items)
    changes = [
        build_field_error(pk, "This item is no longer in the batch.")
        for pk in items
        if pk not in known
    ]
    for member in members:
        if member.id in seen:
            why = member.gone or _describe_member_change(member, marks.get(member.id))
        elif member.gone or member.id in left_out:
            continue
        else:
            why = "This item joined after you opened the batch."
        if why:
            changes.append(build_field_error(member.id, why))
    return changes


def _describe_member_change(member: BatchMember, mark: str | None) -> str:
    if mark is None or mark == member.mark:
        return ""
    if member.changed:
        version = member.version
        at = f"{version.created_at:%H:%M:%S} UTC"
        return f"Changed to version {version.number} at {at}."
    return "The current record changed after you opened the batch."


def _describe_changed_list(changed: int, of: int) -> str:
    if not changed:
        return (
            "This batch changed after you opened it. No item was decided. Review it,"
            " then confirm again."
        )
    return (
        f"{changed} of {of} items changed or expired since you opened this batch. No"
        " item was decided. Review the changes, then confirm again."
    )


def check_batch_total(batch: Batch, chosen: Sequence[BatchMember]) -> None:
    """Check that the items together stay within the tool's limit for one batch. Raises
    PolicyViolation."""
    definition = tools.load_definition(batch.tool)
    total = similarity.compute_total(member.version for member in chosen)
    if not similarity.is_above_batch_limit(total, definition):
        return
    most = definition.batchable.total if definition.batchable else None
    limit = f"{most.amount} {most.currency}" if most else "the ceiling"
    raise PolicyViolation(
        f"The total exceeds {limit}, the limit for one batch. No item was decided."
        " Select fewer items.",
        errors=[build_field_error("items", f"at most {limit} in one batch")],
    )


Preflights = Mapping[str, Preflight]


def run_preflights(submission: BatchSubmission) -> Preflights:
    """Call the verifiers of every named item, before any lock is taken.

    Returns the results by request id; empty unless this approves a batch whose tool or
    queue has verifiers. Raises InvalidInput, NotFound, VerifierRefused and what
    `preflight.run_preflight` raises.
    """
    if not VERDICT_SPECS[submission.verdict].batchable:
        raise InvalidInput(
            "A batch can be approved, rejected or escalated. Nothing was recorded."
        )
    rows = Batch.objects.select_related("tool", "queue")
    batch = rows.filter(pk=submission.batch_id).first()
    if batch is None:
        raise NotFound
    if not VERDICT_SPECS[submission.verdict].commits:
        return {}
    definition, policy = tools.load_definition(batch.tool), active.find_active_policy()
    # guard: batch-verifiers
    if not verifiers.may_have_verifiers(definition, policy):
        return {}
    members = membership.load_members(batch, now=clock.now())
    named = [
        member
        for member in members
        if member.id in submission.items and not member.gone
    ]
    return {member.id: _run_member_preflight(submission, member) for member in named}


def _run_member_preflight(
    submission: BatchSubmission, member: BatchMember
) -> Preflight:
    with name_failing_member(member):
        preflight = run_preflight(_build_member_submission(submission, member))
        if preflight.raised:
            raise VerifierRefused(
                "A verifier requires more approval for one item, so no item was"
                " decided. Remove that item and decide it separately."
            )
    return preflight


# The only paths that a log record may contain.
REQUEST_ID = re.compile(r"r-[a-z0-9]{1,38}")


def decide_batch(submission: BatchSubmission) -> Batch:
    """Record one verdict on every item of the list, or on none.

    Raises BatchChanged with what changed, AlreadyDecided, NotFound, InvalidInput,
    PolicyViolation above the tool's ceiling, and for any single item what
    `decisions.decide.decide_request` raises; `errors` then names the item. A refusal is
    logged in a separate transaction.
    """
    try:
        return _record_verdict(submission, run_preflights(submission))
    except DomainError as error:
        _log_refusal(submission, error)
        raise


@operation(
    entry="decide_batch",
    locks="batch, requests by id, their holds by id",
    writes="Batch, BatchItem, and the rows of each decision",
    logs="batch.decided, and the records of each decision",
    after="what each decision leaves",
)
def _record_verdict(submission: BatchSubmission, asked: Preflights) -> Batch:
    batch = locks.lock_batch(submission.batch_id)
    if batch.status not in (BatchStatus.FORMING, BatchStatus.OPEN):
        raise _build_closed_error(batch)
    inside = batch.items.filter(left_at__isnull=True)
    requests = locks.lock_requests(inside.values_list("request", flat=True))
    now = clock.now()
    for request in requests.values():
        incidents.catch_up_deadline(request, now)
    members = membership.load_members(batch, now=now, requests=requests)
    check_list_unchanged(submission, members)
    chosen = [member for member in members if member.id in set(submission.items)]
    check_batch_total(batch, chosen)
    votes = _build_votes(submission, chosen, asked)
    # A batch is all or nothing: its items are checked by now, and none is written.
    checks.check_deferred_refusal(submission.page)
    _close_batch(batch, submission, members, now)
    verdicts.VERDICTS[submission.verdict](votes)
    failpoints.point("batch_uncommitted", batch.pk)
    return batch


def _build_closed_error(batch: Batch) -> DomainError:
    if batch.status == BatchStatus.DECIDED:
        return AlreadyDecided(
            "This batch has already been decided. Your decision was not recorded."
        )
    return BatchChanged(
        "This batch was dissolved because too few items are left. No item was decided."
        " Decide each one separately."
    )


def _build_votes(
    submission: BatchSubmission,
    chosen: Sequence[BatchMember],
    asked: Preflights,
) -> list[StepVote]:
    """Check each item as a single decision on it would be checked, and find the step
    that an approval fills. The facts for all items are loaded once."""
    each = {
        member.id: _build_member_submission(submission, member) for member in chosen
    }
    requests = {member.id: member.request for member in chosen}
    known = load_decision_facts(list(each.values()), requests)
    restore_epochs.check_not_restored(known.state.halted)
    votes = []
    for member in chosen:
        # Their role may have been revoked during the wait for the locks.
        member_submission = replace(each[member.id], person=known.person)
        preflight = asked.get(member.id, Preflight())
        with name_failing_member(member):
            case = checks.build_decision_context(
                member_submission, member.request, preflight, known, now=known.state.now
            )
            votes.append(checks.build_vote(case))
    return votes


def _build_member_page(
    submission: BatchSubmission, member: BatchMember
) -> PageEvidence | None:
    """The page evidence of one item. The person read one page for all items; its copy
    is kept with the first, and the batch itself raises what it deferred."""
    if submission.page is None:
        return None
    return replace(
        submission.page,
        rendered=submission.page.rendered if member.id == submission.items[0] else None,
        check=submission.samples.get(member.id, {}),
        deferred_refusal=None,
    )


def _close_batch(
    batch: Batch,
    submission: BatchSubmission,
    members: Sequence[BatchMember],
    now: datetime,
) -> None:
    """Mark the batch as decided; members not in the list return to the queue."""
    leaving = [member for member in members if member.id not in set(submission.items)]
    rows = BatchItem.objects.filter(pk__in=[member.item.pk for member in leaving])
    rows.update(left_at=now)
    transitions.batch.apply(
        batch,
        "decide",
        actor=submission.actor,
        now=now,
        changes={
            "settled_at": now,
            "digest": submission.digest,
            "stop_at_failure": submission.stop_at_failure,
        },
        verdict=submission.verdict,
        data={
            "batch": batch.pk,
            "digest": submission.digest,
            "requests": list(submission.items),
            "left_out": [member.id for member in leaving],
            "opened": dict(submission.samples),
            "reason_code": submission.reason_code,
            **({"view": submission.view} if submission.view else {}),
        },
        private={"reason": submission.reason},
    )


@operation(entry="decide_batch", logs="batch.refused")
def _log_refusal(submission: BatchSubmission, error: DomainError) -> None:
    """Log a refused verdict in a transaction of its own, because the decision's rolls
    back (docs/invariants.md I8, I30)."""
    batch = Batch.objects.filter(pk=submission.batch_id).first()
    if batch is None:
        return
    paths = [field_error["path"] for field_error in error.errors]
    membership.log_batch_event(
        batch,
        "batch.refused",
        submission.actor,
        clock.now(),
        {
            "code": error.code,
            "seen": submission.digest[:80],
            "requests": [pk for pk in paths if REQUEST_ID.fullmatch(pk)],
        },
        verdict=submission.verdict,
    )
