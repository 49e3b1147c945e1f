"""Every refusal that leaves a review page: what happened, what did not, what was typed
and is kept (ux.md 3.10)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from journal import clock
from reviews.governance import readings
from reviews.holds import take
from reviews.models import ApprovalRequest, Lease
from tests import factories, pages
from tests.factories import decide
from tests.gallery import shop
from tests.gallery.scene import Room, Sent
from tests.gallery.stage import Stage, path
from tests.reviews import states
from tests.reviews.desk.request.test_commit import right_answer

ROOM = Room("refused")
DECIDE = "reviews:decide"
NOTE = "The carrier's photograph shows another door."


def panel(
    request: ApprovalRequest, verdict: str, by: str = "rita", **args: Any
) -> dict[str, Any]:
    """What the panel of a verdict sends: every argument, some changed."""
    request.refresh_from_db()
    typed = {**request.sealed.revision.args, **args} if verdict == "modify" else {}
    return {
        "seen": pages.token(request, by),
        "verdict": verdict,
        "version": request.version,
        "action_hash": request.action_hash,
        "reason_code": factories.reason_for(verdict),
        "reason": NOTE,
        **{f"arg.{name}": value for name, value in typed.items()},
    }


def sent(request: ApprovalRequest, **fields: Any) -> Sent:
    return Sent(path(request, "decide"), fields)


def rejects(request: ApprovalRequest, **fields: Any) -> Sent:
    return sent(request, **{**panel(request, "reject"), **fields})


@ROOM.scene("held", DECIDE, "Tom Example is deciding this until")
def held(stage: Stage) -> Sent:
    said = rejects(stage.refund())
    request = ApprovalRequest.objects.latest("opened_at")
    take.take_hold(request_id=request.pk, person=stage.tom)
    return said


@ROOM.scene("lease-lapsed", DECIDE, "Tom Example took it over")
def lease_lapsed(stage: Stage) -> Sent:
    request = stage.refund()
    token = take.take_hold(request_id=request.pk, person=stage.rita).token
    said = rejects(request, lease=token)
    past = clock.now() - timedelta(seconds=1)
    Lease.objects.filter(pk=request.pk).update(until=past)
    take.take_hold(request_id=request.pk, person=stage.tom)
    return said


@ROOM.scene("stale", DECIDE, "The request changed while you were reading.")
def stale(stage: Stage) -> Sent:
    request = stage.refund()
    said = rejects(request)
    args = {**request.sealed.revision.args, "amount": "58.50", "partial": True}
    factories.revised(stage.agent, request.proposal, args)
    return said


@ROOM.scene("precondition", DECIDE, "changed after this page was made")
def precondition(stage: Stage) -> Sent:
    request = stage.refund()
    said = sent(request, **panel(request, "approve"))
    shop.changed(request.sealed.revision.args["order_id"], "Returned to the depot")
    readings.reread_state(request.sealed.revision)
    return said


@ROOM.scene("decided", DECIDE, "Tom Example rejected this")
def decided(stage: Stage) -> Sent:
    request = stage.refund()
    said = sent(request, **panel(request, "approve"))
    decide(request, stage.tom, "reject", reason_code="unsafe")
    return said


@ROOM.scene("expired", DECIDE, "before your decision arrived")
def expired(stage: Stage) -> Sent:
    request = stage.refund()
    said = rejects(request)
    factories.overdue(request)
    return said


@ROOM.scene("withdrawn", DECIDE, "This was withdrawn")
def withdrawn(stage: Stage) -> Sent:
    request = stage.refund()
    said = rejects(request)
    states.withdraw(stage.agent, request.proposal)
    return said


@ROOM.scene("incomplete", DECIDE, "This page is incomplete.")
def incomplete(stage: Stage) -> Sent:
    return rejects(stage.refund(), action_hash="")


@ROOM.scene("policy", DECIDE, "never exceed")
def policy(stage: Stage) -> Sent:
    request = stage.refund()
    return sent(request, **panel(request, "modify", amount="9500.00"))


@ROOM.scene("schema", DECIDE, "Some fields are not right yet.")
def schema(stage: Stage) -> Sent:
    request = stage.refund()
    return sent(request, **panel(request, "modify", amount="much", reason="r" * 220))


@ROOM.scene("unchanged", DECIDE, "Nothing changed: use Approve.")
def unchanged(stage: Stage) -> Sent:
    request = stage.refund("59.00")
    return sent(request, **panel(request, "modify"))


@ROOM.scene("reason", DECIDE, "Choose a reason.")
def reason(stage: Stage) -> Sent:
    return rejects(stage.refund("59.00"), reason_code="")


@ROOM.scene("question", DECIDE, "That is not what this request does.")
def question(stage: Stage) -> Sent:
    request = stage.refund("59.00")
    wrong = 0 if right_answer(request) else 1
    return sent(request, **panel(request, "approve"), answer=wrong)


@ROOM.scene("unanswered", DECIDE, "Answer the question first.")
def unanswered(stage: Stage) -> Sent:
    request = stage.refund("59.00")
    return sent(request, **panel(request, "approve"))


@ROOM.scene("reauth", DECIDE, "Confirm it is you", who="sue")
def reauth(stage: Stage) -> Sent:
    request = stage.address()
    return sent(request, **panel(request, "approve", "sue"), answer="0")


@ROOM.scene("password", DECIDE, "not right", who="sue")
def password(stage: Stage) -> Sent:
    request = stage.address()
    typed = panel(request, "approve", "sue") | {"password": "wrong"}
    return sent(request, **typed, answer="0")


@ROOM.scene("too-fast", DECIDE, "You opened this")
def too_fast(stage: Stage) -> Sent:
    document = shop.policy()
    document["desk"] = {"time_floor": {"high": 3600}, "micro_check": {"high": 0}}
    factories.policy(stage.gate.people, document)
    request = stage.refund()
    now = clock.now() - timedelta(seconds=3)
    fresh = {"seen": pages.token(request, rendered_at=now)}
    return sent(request, **{**panel(request, "approve"), **fresh})


@ROOM.scene("throttle", DECIDE, "You have decided")
def throttled(stage: Stage) -> Sent:
    document = shop.policy()
    document["desk"] = {"micro_check": {"high": 0}, "most_decisions": 1}
    factories.policy(stage.gate.people, document)
    decide(stage.refund(), stage.rita)
    request = stage.refund("59.00")
    return sent(request, **panel(request, "approve"))


@ROOM.scene("ceiling", DECIDE, "above what you may decide")
def ceiling(stage: Stage) -> Sent:
    stage.rita.ceiling_minor = 5_000
    stage.rita.save()
    request = stage.refund("58.00")
    return sent(request, **panel(request, "approve"))
