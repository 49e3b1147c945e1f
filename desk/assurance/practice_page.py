"""The pages of practice: one item with what the reviewer hears after the answer, and
the list of the answers of a practice that ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.urls import reverse

from assurance import practice
from assurance.defects import BY_KIND, Defect
from assurance.practice import ShownItem
from journal.errors import NotFound
from policies.models import Person
from reviews.choices import DefectKind, PracticeEnding, Verdict
from reviews.models import Practice, PracticeItem

from ..components.regions import Regions

WARM_UP = "Warm-up"


@dataclass(frozen=True, slots=True)
class PracticeFeedback:
    """What a reviewer hears after an answer. `next_url` leads to the next item, or to
    the list after the last one."""

    title: str
    lines: Sequence[str]
    next_url: str
    next_label: str


@dataclass(frozen=True, slots=True)
class PracticeItemPage:
    """One item. `regions` is None where the item can no longer be shown."""

    practice_id: int
    number: int
    count: int
    title: str
    url: str
    regions: Regions | None
    feedback: PracticeFeedback | None
    answered: bool
    error: str = ""


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """One answer in the list of a practice that ended."""

    number: int
    url: str
    planted: str
    answer: str
    right: bool


@dataclass(frozen=True, slots=True)
class PracticePage:
    """A practice that ended."""

    title: str
    skipped: bool
    caught: int
    planted: int
    approved: int
    plain: int
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
    count = item.practice.items.count()
    return PracticeItemPage(
        practice_id=practice_id,
        number=number,
        count=count,
        title=describe_practice(item.practice),
        url=build_item_url(practice_id, number),
        regions=Regions(person, shown.version) if shown else None,
        feedback=_build_feedback(shown, count) if shown and item.verdict else None,
        answered=bool(item.verdict),
        error=error,
    )


def build_item_url(practice_id: int, number: int) -> str:
    """The address of an item."""
    return reverse("reviews:practice_item", args=[practice_id, number])


def _build_feedback(shown: ShownItem, count: int) -> PracticeFeedback:
    item, last = shown.item, shown.item.number == count
    practice_id = item.practice_id
    return PracticeFeedback(
        title=_build_title(item),
        lines=_describe_item(shown.defect),
        next_url=reverse("reviews:practice", args=[practice_id])
        if last
        else build_item_url(practice_id, item.number + 1),
        next_label="Your answers" if last else "Next item",
    )


def _build_title(item: PracticeItem) -> str:
    if item.defect:
        return "You caught it." if item.is_right else "This one got past you."
    return "Right: nothing was planted." if item.is_right else "Nothing was planted."


def _describe_item(defect: Defect | None) -> list[str]:
    if defect is None:
        return ["This is a request as people approved it."]
    return [f"Planted: {defect.explanation} The page shows it {defect.place}."]


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
    counts = count_answers(items)
    return PracticePage(
        title=describe_practice(chosen),
        skipped=chosen.ending == PracticeEnding.SKIPPED,
        caught=counts.caught,
        planted=counts.planted,
        approved=counts.approved,
        plain=counts.plain,
        lines=[_build_line(item) for item in items if item.verdict],
    )


def _build_line(item: PracticeItem) -> AnswerLine:
    return AnswerLine(
        number=item.number,
        url=build_item_url(item.practice_id, item.number),
        planted=BY_KIND[DefectKind(item.defect)].title if item.defect else "Nothing",
        answer="Approve" if item.verdict == Verdict.APPROVE else "Reject",
        right=item.is_right,
    )


def find_next_url(chosen: Practice) -> str:
    """The address of the first unanswered item."""
    first = chosen.items.filter(verdict="").order_by("number").first()
    assert first is not None  # the last answer ends a practice
    return build_item_url(chosen.pk, first.number)
