"""Practice of a reviewer: offered, an item, what they hear, and their answers."""

from __future__ import annotations

import random

from assurance import practice
from policies.models import Person
from reviews.choices import Verdict
from reviews.models import Practice
from tests import factories
from tests.assurance.planting import age_source
from tests.factories import decide
from tests.gallery.scene import SceneGroup
from tests.gallery.store import StoreGate

PRACTICE = SceneGroup(
    "practice",
    shows=("reviews:practice", "reviews:practice_item"),
)


@PRACTICE.preparation
def approve_mails(gate: StoreGate) -> None:
    """Ten mails that Tom approved a while ago."""
    for number in range(practice.WARM_UP_ITEMS):
        request = gate.mail(subject=f"Your order {78300 + number}")
        decide(request, gate.tom, reason_code="verified")
        factories.window_over(request)
        age_source(request)


def find_practice(gate: StoreGate) -> Practice:
    """Rita's warm-up."""
    rita = Person.objects.get(pk=gate.rita.pk)
    open_practice = practice.find_open_practice(rita)
    return open_practice or practice.start_practice(
        person=rita, random_source=random.Random(1)
    )


PRACTICE.add("offered", "You can warm up with ten copies", "/queue/")
PRACTICE.add("page", "Start warm-up", "/assurance/")


@PRACTICE.scene("item", "What would you decide?")
def show_item(gate: StoreGate) -> str:
    chosen = find_practice(gate)
    planted = chosen.items.exclude(defect="").order_by("number").first()
    assert planted is not None
    answer_until(chosen, planted.number)
    return f"/assurance/practice/{chosen.pk}/{planted.number}/"


def answer_until(chosen: Practice, number: int) -> None:
    """Approve every item before this one."""
    for item in chosen.items.filter(number__lt=number, verdict="").order_by("number"):
        practice.record_answer(
            practice_id=chosen.pk,
            number=item.number,
            person=chosen.reviewer,
            verdict=Verdict.APPROVE,
        )


@PRACTICE.scene("missed", "This one got past you.")
def show_feedback(gate: StoreGate) -> str:
    place = show_item(gate)
    *_, pk, number, _ = place.split("/")
    answer_until(Practice.objects.get(pk=pk), int(number) + 1)
    return place


@PRACTICE.scene("answers", "planted defects and approved")
def show_answers(gate: StoreGate) -> str:
    chosen = find_practice(gate)
    answer_until(chosen, practice.WARM_UP_ITEMS + 1)
    return f"/assurance/practice/{chosen.pk}/"


PRACTICE.add("own", "Others approved", "/assurance/")
PRACTICE.add("people", "Your people in the last 30 days", "/assurance/", "sue")
