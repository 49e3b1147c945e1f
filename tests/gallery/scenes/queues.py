"""A request that moves to another queue, and what a queue's panel offers."""

from __future__ import annotations

from journal import canonical
from policies.models import Queue
from reviews.administration import queue_presets
from reviews.administration.queue_presets import OfferedPreset
from reviews.choices import VERDICT_SPECS, ReasonCode, Verdict
from reviews.decisions import moves
from reviews.models import ApprovalRequest
from tests.factories import PASSWORD, decide
from tests.gallery.scene import SceneGroup, Submission, at, send
from tests.gallery.store import StoreGate

QUEUES = SceneGroup("queues", shows=("reviews:move", "reviews:queue_preset"))
WHY = "The customer's records are with the other team."
OWN = {verdict: spec.reasons for verdict, spec in VERDICT_SPECS.items()}
PLACES = {
    f"place.{verdict}.{code}": str(place)
    for verdict, codes in OWN.items()
    for place, code in enumerate(codes, start=1)
}


@QUEUES.preparation
def offer(gate: StoreGate) -> None:
    """Few reasons and two texts for refunds, and a queue in which nobody decides."""
    Queue.objects.create(name="night", title="Night shift")
    queue_presets.change_preset(
        queue_name="refunds",
        reasons={**OWN, Verdict.REJECT: [ReasonCode.DUPLICATE, ReasonCode.OTHER]},
        texts=[
            "This was refunded before: look at the order's history.",
            "Ask the customer for a picture of the parcel as it arrived,"
            " with its label, and propose the refund again with it as evidence.",
        ],
        reason="The team writes the same two notes every day.",
        by=gate.adam,
    )


def refund(gate: StoreGate) -> ApprovalRequest:
    return gate.refund()


def over(gate: StoreGate) -> ApprovalRequest:
    return decide(gate.refund(), gate.rita, "reject")


QUEUES.add("move", "Move to another queue", at(refund, "move"), "sue")
QUEUES.add(
    "move-without-reason",
    "Say why it moves",
    send(refund, "move", queue="customers", reason=""),
    "sue",
)
QUEUES.add(
    "move-in-vain",
    "of Night shift could decide it",
    send(refund, "move", queue="night", reason=WHY),
    "sue",
)
QUEUES.add(
    "move-too-late",
    "There is nothing left to decide",
    send(over, "move", queue="customers", reason=WHY),
    "sue",
)


@QUEUES.scene("moved", "Why it was moved", "sam")
def moved(gate: StoreGate) -> ApprovalRequest:
    request = gate.refund()
    to = Queue.objects.get(name="customers")
    moves.move_request(request_id=request.pk, person=gate.sue, to=to, reason=WHY)
    return request


QUEUES.add("ready-text", "Ready text", at(refund, "decide", query="arm=reject"))
QUEUES.add("preset", "Number the reasons", "/queues/refunds/", "adam")
QUEUES.add("preset-auditor", "the decision panel offers", "/queues/refunds/", "otto")
QUEUES.add(
    "preset-wrong",
    "Offer at least one reason",
    Submission(
        "/queues/refunds/",
        {
            **PLACES,
            **{f"place.escalate.{code}": "" for code in OWN[Verdict.ESCALATE]},
            "texts.0": "Ask for the receipt.",
            "texts.1": "Ask for the receipt.",
            "reason": "Fewer.",
            "password": PASSWORD,
        },
    ),
    "adam",
)
QUEUES.add(
    "preset-stale",
    "another administrator changed this",
    Submission(
        "/queues/refunds/",
        {
            **PLACES,
            "texts.0": "Ask for the receipt.",
            "reason": "Fewer.",
            "password": PASSWORD,
            "shown": canonical.format_shown(OfferedPreset({}, ()).parts),
        },
    ),
    "adam",
)
