"""The pages of second reviews: what waits for this person, one of them, and the
disagreements that a supervisor settles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from assurance import second_reviews
from journal.errors import NotFound
from policies.models import Person
from reviews.choices import VERDICT_SPECS, Verdict
from reviews.effects import describe
from reviews.models import SecondReview
from reviews.presenters.shapes import SentencePart

from ..components import page_evidence
from ..components.regions import Regions
from ..components.visibility import select_current_versions

MOST_LISTED = 50


@dataclass(frozen=True, slots=True)
class ReviewLine:
    """One second review in a list."""

    review: SecondReview
    effect: Sequence[SentencePart]


@dataclass(frozen=True, slots=True)
class GivenVerdict:
    """One of two verdicts that disagree."""

    label: str
    verdict: str
    who: Person | None
    reason: str


@dataclass(frozen=True, slots=True)
class ChecksPage:
    """Both lists."""

    waiting: Sequence[ReviewLine]
    split: Sequence[ReviewLine]


@dataclass(frozen=True, slots=True)
class CheckPage:
    """One second review. `verdicts` are only there to settle a disagreement."""

    pk: int
    regions: Regions  # what the first reviewer saw
    verdicts: Sequence[GivenVerdict]
    error: str = ""
    reason: str = ""


def build_checks_page(person: Person, now: datetime) -> ChecksPage:
    """Build the lists, in a fixed number of queries."""
    waiting = list(second_reviews.select_open_reviews(person, now)[:MOST_LISTED])
    split = list(second_reviews.select_split_reviews(person)[:MOST_LISTED])
    effects = _load_effects([*waiting, *split])
    return ChecksPage(
        [ReviewLine(row, effects[row.decision.request_id]) for row in waiting],
        [ReviewLine(row, effects[row.decision.request_id]) for row in split],
    )


def _load_effects(
    reviews: Sequence[SecondReview],
) -> dict[str, Sequence[SentencePart]]:
    requests = {review.decision.request_id for review in reviews}
    versions = select_current_versions().filter(request__in=requests)
    return {
        version.request_id: describe.load_brief(version.revision).effect
        for version in versions
    }


def build_check_page(
    person: Person, pk: int, now: datetime, *, error: str = "", reason: str = ""
) -> CheckPage:
    """Build the page of one. Raises NotFound for a person who may neither answer nor
    settle it."""
    open_ = second_reviews.select_open_reviews(person, now).filter(pk=pk).first()
    split = second_reviews.select_split_reviews(person).filter(pk=pk).first()
    review = open_ or split
    if review is None:
        raise NotFound
    decision = review.decision
    sealed = page_evidence.find_version(decision.request_id, decision.version)
    if sealed is None:
        raise NotFound
    return CheckPage(
        pk=review.pk,
        regions=Regions(person, sealed, reading=decision.reading),
        verdicts=_list_verdicts(review) if split else [],
        error=error,
        reason=reason,
    )


def _list_verdicts(review: SecondReview) -> list[GivenVerdict]:
    first = review.decision
    return [
        GivenVerdict("First", _label(first.verdict), first.reviewer, first.reason),
        GivenVerdict("Second", _label(review.verdict), review.reviewer, review.reason),
    ]


def _label(verdict: str) -> str:
    return VERDICT_SPECS[Verdict(verdict)].past_in_full.capitalize()
