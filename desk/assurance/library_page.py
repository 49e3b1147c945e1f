"""The library of defects: every kind with its figures, and one kind with its example
and the change that waits for a second administrator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Q

from assurance import library
from assurance.clones import LATELY
from assurance.defects import BY_KIND, LIBRARY, Defect
from assurance.examples import DefectExample, build_example
from policies.models import Person
from reviews import permissions
from reviews.choices import ChangeStatus, DefectKind, RealismFlag
from reviews.models import Canary, DefectChange
from reviews.roles import Permission
from stats.charts import format_rate
from stats.people import FEWEST
from stats.readings import Rate

WITHHELD = f"withheld: fewer than {FEWEST} people"
WEIGHT_WORDS = {0: "Off", 1: "Usual", 2: "Twice as often"} | {
    weight: f"{weight} times as often" for weight in range(3, library.MOST_WEIGHT + 1)
}


@dataclass(frozen=True, slots=True)
class KindFigures:
    """How often a kind was planted in the last 90 days, and how reviewers did."""

    planted: int
    rate: str
    obvious: str
    unclear: str


@dataclass(frozen=True, slots=True)
class KindRow:
    """One kind in the list."""

    defect: Defect
    weight: str
    waits: bool
    figures: KindFigures


@dataclass(frozen=True, slots=True)
class OpenChange:
    """The change of a kind that waits. `why_not` says why this reader may not answer
    it."""

    row: DefectChange
    weight: str
    why_not: str
    own: bool


@dataclass(frozen=True, slots=True)
class WeightChoice:
    """One choice of the form."""

    value: int
    label: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class KindPage:
    """One kind. `typed` is the reason in the form of the change, or of the answer while
    one waits; `errors` are the problems of what was sent, by field."""

    defect: Defect
    example: DefectExample
    weight: str
    figures: KindFigures
    change: OpenChange | None
    choices: Sequence[WeightChoice]
    typed: str
    errors: Mapping[str, str]


def build_library_page(person: Person, now: datetime) -> list[KindRow]:
    """Every kind in the order of the library, in a fixed number of queries. Raises
    NotPermitted for anybody but administrators."""
    permissions.check_permission(person, Permission.MANAGE_DEFECTS)
    weights, figures = library.load_weights(), _load_figures(now)
    waiting = set(_select_waiting().values_list("defect", flat=True))
    return [
        KindRow(
            defect=defect,
            weight=WEIGHT_WORDS[weights[defect.kind]],
            waits=defect.kind in waiting,
            figures=_build_figures(figures.get(defect.kind)),
        )
        for defect in LIBRARY
    ]


def _select_waiting() -> Any:
    return DefectChange.objects.filter(status=ChangeStatus.PROPOSED)


def _load_figures(now: datetime) -> dict[str, dict[str, Any]]:
    rows = Canary.objects.filter(inserted_at__gt=now - LATELY).values("defect")
    decided = Q(caught__isnull=False)
    counted = rows.annotate(
        planted=Count("pk"),
        n=Count("pk", filter=decided),
        caught_n=Count("pk", filter=Q(caught=True)),
        people=Count("reviewer", filter=decided, distinct=True),
        obvious=Count("pk", filter=Q(realism=RealismFlag.OBVIOUS)),
        unclear=Count("pk", filter=Q(realism=RealismFlag.UNCLEAR)),
    )
    return {row["defect"]: dict(row) for row in counted}


def _build_figures(row: Mapping[str, Any] | None) -> KindFigures:
    """Figures of few people would say how one of them works (docs/metrics.md)."""
    if row is None:
        return KindFigures(0, "none", "0", "0")
    if 0 < row["people"] < FEWEST:
        return KindFigures(row["planted"], WITHHELD, WITHHELD, WITHHELD)
    rate = format_rate(Rate(row["caught_n"], row["n"]))
    obvious, unclear = str(row["obvious"]), str(row["unclear"])
    return KindFigures(row["planted"], rate, obvious, unclear)


def build_kind_page(
    person: Person,
    kind: DefectKind,
    now: datetime,
    *,
    weight: str = "",
    typed: str = "",
    errors: Mapping[str, str] | None = None,
) -> KindPage:
    """Build the page of one kind; `weight`, `typed` and `errors` are of a form that was
    refused. Raises NotPermitted for anybody but administrators."""
    permissions.check_permission(person, Permission.MANAGE_DEFECTS)
    in_force = library.load_weights()[kind]
    change = _select_waiting().filter(defect=kind).select_related("asked_by").first()
    return KindPage(
        defect=BY_KIND[kind],
        example=build_example(kind),
        weight=WEIGHT_WORDS[in_force],
        figures=_build_figures(_load_figures(now).get(kind)),
        change=_build_change(change, person) if change else None,
        choices=[
            WeightChoice(value, label, str(value) == (weight or str(in_force)))
            for value, label in WEIGHT_WORDS.items()
        ],
        typed=typed,
        errors=errors or {},
    )


def _build_change(change: DefectChange, person: Person) -> OpenChange:
    return OpenChange(
        row=change,
        weight=WEIGHT_WORDS[change.weight],
        why_not=library.describe_why_no_answer(change, person),
        own=change.asked_by_id == person.pk,
    )
