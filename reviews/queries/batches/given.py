"""What was said of a batch, and the page that it was said on, for who may open it."""

from __future__ import annotations

from dataclasses import dataclass

from reviews.choices import Verdict
from reviews.desk.batches.load import Loaded
from reviews.desk.components import snapshots
from reviews.models import Decision

SAID = {
    Verdict.APPROVE: "Approved",
    Verdict.REJECT: "Rejected",
    Verdict.ESCALATE: "Escalated",
}


@dataclass(frozen=True, slots=True)
class Given:
    """One verdict on all of them."""

    word: str
    as_seen_url: str  # empty where there is none to open


def given(loaded: Loaded) -> Given | None:
    """In two queries; None for a batch that nobody decided."""
    votes = Decision.objects.filter(
        request__in=[member.id for member in loaded.members],
        authority__batch=loaded.batch.pk,
    )
    vote = votes.order_by("pk").first()
    if vote is None:
        return None
    word = SAID[Verdict(vote.verdict)]
    kept = vote.authority.get("view")
    opens = kept and snapshots.openable(loaded.person).filter(pk=vote.pk).exists()
    return Given(word, snapshots.url(vote) if opens else "")
