"""The rows that every verdict leaves: the decision, its page evidence and its log
record. Recording them also ends the hold on the request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from journal import log
from reviews import transitions
from reviews.holds import rows as leases
from reviews.models import Decision, Snapshot

from . import submission
from .case import Case

BATCH, LEASE_BROKEN = "batch", "lease_broken"


class Vote(NamedTuple):
    """A decision context, and the index of the step that the verdict fills, or None."""

    case: Case
    place: int | None = None


def write(votes: Sequence[Vote]) -> None:
    """Record the decisions with their page evidence and log records, and end the holds,
    in a few statements for all. The log holds a person's words only as an HMAC."""
    rows = Decision.objects.bulk_create(_row(*vote) for vote in votes)
    pages = [vote.case.said.seen for vote in votes]
    Snapshot.objects.bulk_create(
        submission.snapshot(row, page)
        for row, page in zip(rows, pages, strict=True)
        if page is not None
    )
    log.append_many(_recorded(*vote) for vote in votes)
    leases.settle((case.lease, case.request) for case, _ in votes)


def _held(case: Case) -> dict[str, str]:
    """The token of the hold under which it was decided, for the message to a person
    whose own hold had lapsed."""
    mine = case.lease is not None and case.lease.holder_id == case.said.person.pk
    return {"lease": case.lease.token} if case.lease is not None and mine else {}


def _row(case: Case, place: int | None) -> Decision:
    said, request = case.said, case.request
    return Decision(
        request=request,
        version=request.version,
        reviewer=said.person,
        verdict=said.verdict,
        counts=place is not None,
        step=place,
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


def _recorded(case: Case, place: int | None) -> log.Entry:
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
            "counts": place is not None,
            "by": said.by,
            **more,
        },
        private={"reason": case.said.reason},
        **transitions.request.context(case.request),
    )


def flags_of(case: Case) -> list[str]:
    """Flags of the decision, for lists, filters and metrics."""
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
    """Log something beside the decision, with its verdict and actor. `private` holds a
    person's words, which the log keeps only as an HMAC."""
    log.append(
        kind,
        actor=case.said.actor,
        at=case.now,
        verdict=case.said.verdict,
        data=data,
        private=private,
        **transitions.request.context(case.request),
    )
