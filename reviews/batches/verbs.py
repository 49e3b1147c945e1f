"""What a verdict on many does to them, in a few statements for all. Whoever calls
holds the locks of the batch and of its requests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import Q

from journal.clock import ClockTimestamp
from policies import facts
from reviews import tallies, transitions, verdicts
from reviews import votes as rows
from reviews.cases import Case
from reviews.choices import Verdict

Votes = Sequence[tuple[Case, int | None]]  # each with the place that it fills


def _approve(votes: Votes, now: datetime) -> None:
    rows.write_many(votes)
    first = votes[0][0]
    seconds = first.version.recall_seconds  # of all of them: they are alike
    if seconds == 0:
        for case, _ in votes:
            tallies.authorize(
                case.request, actor=case.said.actor, now=now, guard=tallies.still(case)
            )
        return
    transitions.request.apply_many(
        [case.request for case, _ in votes],
        "hold",
        actor=first.said.actor,
        now=now,
        changes={"recall_until": now + timedelta(seconds=seconds)},
        guard=_in_time(),
    )


def _reject(votes: Votes, now: datetime) -> None:
    rows.write_many(votes)
    requests = [case.request for case, _ in votes]
    transitions.request.apply_many(
        requests,
        "reject",
        actor=votes[0][0].said.actor,
        now=now,
        changes={"settled_at": now, "recall_until": None},
        guard=_in_time(),
        verdict=Verdict.REJECT,
    )
    facts.release_many([request.proposal_id for request in requests])


def _escalate(votes: Votes, now: datetime) -> None:
    """Each asks a supervisor as well, and is decided alone from then on."""
    for case, _ in votes:
        verdicts.escalate(case)


VERBS = {
    Verdict.APPROVE: _approve,
    Verdict.REJECT: _reject,
    Verdict.ESCALATE: _escalate,
}


def _in_time() -> Q:
    """The guard of each row: the deadline by the database's clock. Version and bytes
    cannot move, the rows are locked."""
    return Q(expires_at__gt=ClockTimestamp())
