"""Practice started by the product's own operation."""

from __future__ import annotations

import random

from assurance import practice
from policies.models import Person
from reviews.choices import DefectKind, Verdict
from reviews.models import ApprovalRequest, Practice, PracticeItem
from tests.assurance.planting import approve_source, plant, reload
from tests.conftest import Gate
from tests.factories import decide

SEED = 7


def approve_sources(gate: Gate, count: int = practice.WARM_UP_ITEMS) -> None:
    """So many payments that Sam approved a while ago."""
    for _ in range(count):
        approve_source(gate)


def miss(gate: Gate, kind: DefectKind, times: int) -> ApprovalRequest:
    """Rita approves so many canaries of a kind; return the last one."""
    for _ in range(times):
        request = plant(gate, kind=kind)
        decide(request, gate.rita)
    return ApprovalRequest.with_canaries.get(pk=request.pk)


def start(person: Person, kind: DefectKind | None = None) -> Practice:
    return practice.start_practice(
        person=reload(person), kind=kind, random_source=random.Random(SEED)
    )


def answer(chosen: Practice, item: PracticeItem, verdict: Verdict) -> None:
    practice.record_answer(
        practice_id=chosen.pk,
        number=item.number,
        person=chosen.reviewer,
        verdict=verdict,
    )


def approve_all(chosen: Practice) -> None:
    """Approve every item, also those with a defect."""
    for item in chosen.items.order_by("number"):
        answer(chosen, item, Verdict.APPROVE)
