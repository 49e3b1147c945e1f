"""The assurance page, and the request of a canary that its reviewer decided."""

from __future__ import annotations

from assurance import second_reviews
from reviews.choices import SampleCause, Verdict
from reviews.models import ApprovalRequest, Canary, Decision
from tests import factories
from tests.assurance.planting import age_source, plant_clone
from tests.factories import decide
from tests.gallery.scene import SceneGroup
from tests.gallery.store import StoreGate

ASSURANCE = SceneGroup(
    "assurance",
    shows=("reviews:assurance", "reviews:second_reviews", "reviews:second_review"),
)


def plant(gate: StoreGate) -> ApprovalRequest:
    """A canary for Rita, cloned from a mail that Tom approved."""
    source = gate.mail()
    decide(source, gate.tom, reason_code="verified")
    factories.window_over(source)
    age_source(source)
    return plant_clone(gate.rita)


@ASSURANCE.scene("missed", "This one got past you.")
def show_missed(gate: StoreGate) -> ApprovalRequest:
    request = plant(gate)
    decide(request, gate.rita, reason_code="verified")
    return request


@ASSURANCE.scene("open", "Approve")
def show_open(gate: StoreGate) -> ApprovalRequest:
    if not Canary.objects.filter(ending="").exists():
        return plant(gate)
    return ApprovalRequest.with_canaries.get(canary=True, status="pending")


ASSURANCE.add("own", "You caught 0 %", "/assurance/")
ASSURANCE.add("team", "given a canary", "/assurance/", "sue")


def choose(gate: StoreGate) -> int:
    """Ask for a second review of what Rita approved."""
    request = gate.refund("31.00")
    gate.approve(request)
    decision = Decision.objects.get(request=request)
    second_reviews.choose_decision(decision_id=decision.pk, cause=SampleCause.SAMPLE)
    return int(decision.pk)


@ASSURANCE.scene("second", "I would approve", "tom")
def show_second_review(gate: StoreGate) -> str:
    return f"/assurance/checks/{choose(gate)}/"


@ASSURANCE.scene("split", "Who was right?", "sue")
def show_disagreement(gate: StoreGate) -> str:
    key = choose(gate)
    second_reviews.record_answer(
        decision_id=key, person=gate.tom, verdict=Verdict.REJECT, reason="Too early."
    )
    return f"/assurance/checks/{key}/"


ASSURANCE.add("checks", "You see what they saw", "/assurance/checks/", "sue")


@ASSURANCE.scene("queue", "waiting for your answer", "tom")
def show_waiting_reviews(gate: StoreGate) -> str:
    choose(gate)
    return "/queue/"
