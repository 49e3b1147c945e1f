"""The pages of practice: one item with what the reviewer hears after the answer, and
the list of the answers of a practice that ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.urls import reverse

from assurance import practice
from assurance.defects import BY_KIND
from assurance.practice import ShownItem
from journal.errors import NotFound
from policies.models import Person
from reviews.choices import DefectKind, Verdict
from reviews.models import Practice, PracticeEnding, PracticeItem

from ..components.regions import Regions

WARM_UP = "Warm-up"


@dataclass(frozen=True, slots=True)
class PracticeItemPage:
    """One item of `count`. `regions` is None where the item can no longer be shown;
    `feedback` is what the reviewer hears after an answer, as a title and a sentence."""

    item: PracticeItem
    count: int
    title: str
    regions: Regions | None
    feedback: tuple[str, str] | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """One answer in the list of a practice that ended."""

    item: PracticeItem
    planted: str
    answer: str


@dataclass(frozen=True, slots=True)
class PracticePage:
    """A practice that ended."""

    title: str
    skipped: bool
    counts: PracticeCounts
    lines: Sequence[AnswerLine]


@dataclass(frozen=True, slots=True)
class PracticeCounts:
    """How many items of each sort somebody answered, and how many of them right."""

    caught: int
    planted: int
    approved: int
    plain: int


def describe_practice(chosen: Practice) -> str:
    """`Warm-up`, or the kind of defect that the practice is about."""
    return (
        f"Practice: {BY_KIND[DefectKind(chosen.defect)].title.lower()}"
        if chosen.defect
        else WARM_UP
    )


def build_item_page(
    person: Person, practice_id: int, number: int, error: str = ""
) -> PracticeItemPage:
    """Build the page of an own item that is answered, or next. Raises NotFound for any
    other."""
    item = practice.load_item(person, practice_id, number)
    if item.practice.ending and not item.verdict:
        raise NotFound
    shown = practice.build_shown_item(item)
    return PracticeItemPage(
        item=item,
        count=item.practice.items.count(),
        title=describe_practice(item.practice),
        regions=Regions(person, shown.version) if shown else None,
        feedback=_describe_answer(shown) if shown and item.verdict else None,
        error=error,
    )


def _describe_answer(shown: ShownItem) -> tuple[str, str]:
    right, defect = shown.item.is_right, shown.defect
    if defect is None:
        title = "Right: nothing was planted." if right else "Nothing was planted."
        return title, "This is a request as people approved it."
    title = "You caught it." if right else "This one got past you."
    return title, f"Planted: {defect.explanation} The page shows it {defect.place}."


def count_answers(items: Iterable[PracticeItem]) -> PracticeCounts:
    """Count the answered items among these."""
    answered = [item for item in items if item.verdict]
    planted = [item.is_right for item in answered if item.defect]
    plain = [item.is_right for item in answered if not item.defect]
    return PracticeCounts(sum(planted), len(planted), sum(plain), len(plain))


def build_practice_page(person: Person, practice_id: int) -> PracticePage:
    """Build the list of an own practice that ended. Raises NotFound for any other."""
    rows = Practice.objects.filter(pk=practice_id, reviewer=person)
    chosen = rows.exclude(ending="").prefetch_related("items").first()
    if chosen is None:
        raise NotFound
    items = sorted(chosen.items.all(), key=lambda item: item.number)
    return PracticePage(
        title=describe_practice(chosen),
        skipped=chosen.ending == PracticeEnding.SKIPPED,
        counts=count_answers(items),
        lines=[_build_line(item) for item in items if item.verdict],
    )


def _build_line(item: PracticeItem) -> AnswerLine:
    return AnswerLine(
        item=item,
        planted=BY_KIND[DefectKind(item.defect)].title if item.defect else "Nothing",
        answer="Approve" if item.verdict == Verdict.APPROVE else "Reject",
    )


def find_next_url(chosen: Practice) -> str:
    """The address of the first unanswered item."""
    first = chosen.items.filter(verdict="").order_by("number").first()
    assert first is not None  # the last answer ends a practice
    return reverse("reviews:practice_item", args=[chosen.pk, first.number])
