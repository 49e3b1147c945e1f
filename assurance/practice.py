"""Practice: a reviewer answers clones of decided requests, half of them with a planted
defect, and hears after each whether they were right.

An item is the version that people approved and the kind of defect to plant in it. The
page plants it when it is shown, so there is no proposal, no request and no row that
anything could execute. Results are the person's and their supervisors': they are in no
log record and in no figure about requests.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet

from journal import clock
from journal.errors import AlreadyDecided, Conflict, NotFound, NotPermitted
from journal.operations import operation
from policies.models import Person
from reviews import locks, permissions
from reviews.choices import DefectKind, Verdict
from reviews.models import (
    Canary,
    Practice,
    PracticeEnding,
    PracticeItem,
    RequestVersion,
    Revision,
)

from . import clones, library
from .defects import Defect

WARM_UP_ITEMS, FOCUSED_ITEMS = 10, 6  # half of them have a defect
AWAY = timedelta(days=14)  # without a decision: a warm-up is offered
DECLINED_FOR = timedelta(days=3)
MISSES = 3  # of one kind, since the last practice of it: a practice is offered
FINISHED = PracticeEnding.FINISHED
# Whether `person` is offered a warm-up at `now`, for the statement that counts the
# queue: they have neither decided nor practised for two weeks, nor declined within
# three days. The caller also asks `has_enough_sources`.
AWAY_SQL = f"""
NOT EXISTS (SELECT FROM reviews_decision AS given
            WHERE given.reviewer_id = %(person)s
              AND given.at > %(now)s - interval '{AWAY.days} days')
AND NOT EXISTS (SELECT FROM reviews_practice AS lately
                WHERE lately.reviewer_id = %(person)s
                  AND lately.started_at > %(now)s - interval '{AWAY.days} days'
                  AND (lately.ending = '{FINISHED}' OR lately.started_at
                       > %(now)s - interval '{DECLINED_FOR.days} days'))
"""  # noqa: S608 constants


@dataclass(frozen=True, slots=True)
class ShownItem:
    """An item as the page shows it: its version, which is not stored if it has a
    defect, and the defect."""

    item: PracticeItem
    version: RequestVersion
    defect: Defect | None


def has_enough_sources(person: Person, now: datetime) -> bool:
    """Whether enough decided requests are there for a warm-up of this person."""
    sources = clones.select_sources(person, now).order_by()[:WARM_UP_ITEMS]
    return sources.count() >= WARM_UP_ITEMS


def is_practice_due(person: Person, kind: DefectKind, now: datetime) -> bool:
    """Whether this person missed the kind often enough since they last practised it,
    and the library still plants it."""
    if not library.load_weights()[kind]:
        return False
    newest = _select_practices(person).filter(defect=kind, ending=FINISHED)
    last = newest.order_by("-started_at").first()
    since = max(now - clones.LATELY, last.started_at) if last else now - clones.LATELY
    missed = Canary.objects.filter(
        reviewer=person, defect=kind, caught=False, ended_at__gt=since
    )
    return missed.count() >= MISSES


def _select_practices(person: Person) -> QuerySet[Practice]:
    return Practice.objects.filter(reviewer=person)


def find_open_practice(person: Person) -> Practice | None:
    """The practice that this person has not ended; None without one."""
    return _select_practices(person).filter(ending="").first()


def start_practice(
    *,
    person: Person,
    kind: DefectKind | None = None,
    random_source: random.Random | None = None,
) -> Practice:
    """Start a warm-up, or a practice of one kind of defect. An open one of the same
    sort goes on, and another one ends.

    Raises NotPermitted for people who decide no requests, and Conflict while there are
    too few decided requests.
    """
    _check_decides(person)
    chance = random_source or random.SystemRandom()
    drawn = _draw_items(person, kind, clock.now(), chance)
    return _store_practice(person, kind, drawn)


def _check_decides(person: Person) -> None:
    if permissions.find_deciding_role(person) is None:
        raise NotPermitted("Only people who decide requests practise.")


@operation(
    entry="start_practice",
    locks="the person's holds (advisory)",
    writes="Practice, PracticeItem",
)
def _store_practice(
    person: Person, kind: DefectKind | None, drawn: Sequence[PracticeItem]
) -> Practice:
    locks.lock_holds_of_person(person.public_id)
    open_ = find_open_practice(person)
    if open_ is not None and open_.defect == (kind or ""):
        return open_
    if not drawn:
        raise Conflict(
            "There are too few decided requests to practise on. Nothing was started."
        )
    now = clock.now()
    if open_ is not None:
        _end_practice(open_, PracticeEnding.SKIPPED, now)
    practice = Practice.objects.create(
        reviewer=person, defect=kind or "", started_at=now
    )
    for number, item in enumerate(drawn, start=1):
        item.practice, item.number = practice, number
    PracticeItem.objects.bulk_create(drawn)
    return practice


def _draw_items(
    person: Person, kind: DefectKind | None, now: datetime, chance: random.Random
) -> list[PracticeItem]:
    """As many items as a practice has, not stored yet: half of them with a defect, each
    of another request; empty while there are too few."""
    half = (FOCUSED_ITEMS if kind else WARM_UP_ITEMS) // 2
    planted: list[PracticeItem] = []
    plain: list[PracticeItem] = []
    weights, uses = library.load_weights(), Counter[str]()
    if kind is not None:
        weights = dict.fromkeys(weights, 0) | {kind: weights[kind]}
    for version in clones.load_versions(clones.select_sources(person, now), chance):
        if _is_above_ceiling(person, version.revision):
            continue
        defect = None
        if len(planted) < half:
            defect = _find_defect(version, uses, weights, chance)
        if defect is not None:
            planted.append(PracticeItem(version=version, defect=defect))
            uses[defect] += 1
        elif len(plain) < half:
            plain.append(PracticeItem(version=version))
        if len(planted) == len(plain) == half:
            drawn = [*planted, *plain]
            chance.shuffle(drawn)
            return drawn
    return []


def _is_above_ceiling(person: Person, revision: Revision) -> bool:
    return permissions.is_above_ceiling(
        person, revision.amount_minor, revision.currency
    )


def _find_defect(
    version: RequestVersion,
    uses: Counter[str],
    weights: dict[DefectKind, int],
    chance: random.Random,
) -> DefectKind | None:
    """The least used kind that fits and for which the policy would ask one approval."""
    for planted in clones.list_fitting_defects(
        version.revision, uses=uses, weights=weights, chance=chance
    ):
        if clones.build_planted_version(version, planted.defect.kind) is not None:
            return planted.defect.kind
    return None


@operation(writes="Practice")
def decline_warm_up(*, person: Person) -> None:
    """Record that this person wants no warm-up now. Raises NotPermitted."""
    _check_decides(person)
    now = clock.now()
    Practice.objects.create(
        reviewer=person,
        started_at=now,
        ending=PracticeEnding.SKIPPED,
        ended_at=now,
    )


@operation(writes="Practice")
def skip_practice(*, practice_id: int, person: Person) -> None:
    """End an own practice before its last answer. Raises NotFound, also for one that
    ended."""
    practice = _select_practices(person).filter(pk=practice_id, ending="").first()
    if practice is None:
        raise NotFound
    _end_practice(practice, PracticeEnding.SKIPPED, clock.now())


def _end_practice(practice: Practice, ending: PracticeEnding, now: datetime) -> None:
    Practice.objects.filter(pk=practice.pk, ending="").update(
        ending=ending, ended_at=now
    )


@operation(writes="PracticeItem, Practice")
def record_answer(
    *, practice_id: int, number: int, person: Person, verdict: Verdict
) -> None:
    """Record the answer to the next item of an own practice; the last one ends it.
    Raises NotFound, and AlreadyDecided for an item that is answered."""
    item = load_item(person, practice_id, number)
    now = clock.now()
    items = PracticeItem.objects.filter(practice=practice_id)
    open_ = items.filter(pk=item.pk, verdict="", practice__ending="")
    if not open_.update(verdict=verdict, answered_at=now):
        raise AlreadyDecided("You have answered this item already.")
    if not items.filter(verdict="").exists():
        _end_practice(item.practice, FINISHED, now)


def load_item(person: Person, practice_id: int, number: int) -> PracticeItem:
    """An item of an own practice that is answered, or next. Raises NotFound for any
    other."""
    rows = PracticeItem.objects.filter(
        practice=practice_id, practice__reviewer=person
    ).select_related(
        "practice",
        "version__request__proposal",
        "version__revision__tool",
        "version__policy",
    )
    item = rows.filter(number=number).first()
    if item is None or rows.filter(number__lt=number, verdict="").exists():
        raise NotFound
    return item


def build_shown_item(item: PracticeItem) -> ShownItem | None:
    """What the page of an item shows; None when its defect no longer fits, because
    another release of Counterseal plants it otherwise."""
    if not item.defect:
        return ShownItem(item, item.version, None)
    built = clones.build_planted_version(item.version, DefectKind(item.defect))
    if built is None:
        return None
    version, planted = built
    return ShownItem(item, version, planted.defect)
