"""Every panel that a verb opens, and every refusal that leaves a review page: what
happened, what did not, and that what was typed is kept."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from journal import clock
from reviews.governance import readings
from reviews.holds import take
from reviews.models import ApprovalRequest, Hold
from tests import factories, pages
from tests.desk.request.test_commit import right_answer
from tests.desk.request.test_views import edited, panel
from tests.factories import decide
from tests.gallery.scene import Build, SceneGroup, Submission, at, url
from tests.gallery.scenes.review import CHANGES, Step, hold_as_tom, second, withdraw
from tests.gallery.store import StoreGate, change_order

ARMED = SceneGroup(
    "armed", shows=("reviews:break_hold", "reviews:hand_over", "reviews:queue_next")
)
REFUSED = SceneGroup("refused", shows=("reviews:decide",))
NOTE = "The carrier's photograph shows another door."


def arm(verdict: str, build: Build) -> Build:
    return at(build, "decide", query=f"arm={verdict}")


def hold(gate: StoreGate) -> ApprovalRequest:
    return gate.hold(gate.refund(), gate.rita)


def refund(gate: StoreGate) -> ApprovalRequest:
    return gate.refund("59.00")


COMMIT, EDIT = "Approve and run", "Approve with my changes"
ARMED.add("approve", COMMIT, arm("approve", refund))
ARMED.add("approve-medium", COMMIT, arm("approve", StoreGate.label))
ARMED.add("approve-mail", "Reason", arm("approve", StoreGate.mail))
ARMED.add(
    "approve-critical",
    "2 approvals",
    arm("approve", StoreGate.address),
    "sue",
)
ARMED.add("approve-second", COMMIT, arm("approve", second), "sam")
ARMED.add("modify", EDIT, arm("modify", refund))
ARMED.add("modify-lists", EDIT, arm("modify", StoreGate.mail))
ARMED.add(
    "modify-nested", "Modify, then approve", arm("modify", StoreGate.address), "sue"
)


@ARMED.scene("modify-checked", "This raises the required approval")
def modify_checked(gate: StoreGate) -> Submission:
    gate.refund("59.00", order="78232")
    request = gate.refund("30.00", order="78232")
    typed = sent(request, "modify", edit="check", **amount("80.00"))
    return Submission(f"{typed.path}?check=1", typed.fields)


@ARMED.scene("modify-widens", "This edit needs another person")
def modify_widens(gate: StoreGate) -> Submission:
    typed = sent(gate.refund(), "modify", edit="check", **amount("95.00"))
    return Submission(f"{typed.path}?check=1", typed.fields)


ARMED.add("reject", "Wrong target", arm("reject", StoreGate.refund))
ARMED.add("escalate", "Your opinion", arm("escalate", StoreGate.refund))
ARMED.add(
    "from-draft",
    "Wrong target",
    arm("reject", lambda gate: gate.save_draft(gate.refund(), "other")),
)
ARMED.add("break-hold", "claimed this request", at(hold, "hold", "break"), "sue")
ARMED.add("hand-over", "Offer to", at(hold, "hold", "give"))


@ARMED.scene("leave", "The address does not fit")
def leave(gate: StoreGate) -> Submission:
    request = hold(gate)
    gate.refund()
    gate.save_draft(request, "other")
    return Submission("/queue/next/", {"from": request.pk, "step": "next"})


def sent(
    request: ApprovalRequest, verdict: str, by: str = "rita", **fields: Any
) -> Submission:
    """What the panel of a verdict sends, some fields or arguments changed."""
    typed = edited(request) if verdict == "modify" else panel(request, verdict, by)
    reason = {"reason_code": factories.reason_for(verdict), "reason": NOTE}
    return Submission(url(request, "decide"), {**typed, **reason, **fields})


def amount(text: str) -> dict[str, str]:
    return {"arg.amount": text}


PLAIN_DESK: dict[str, Any] = {"micro_check": {"high": 0}, "written_answer": []}
LONG = {"arg.reason": "r" * 220}


def rejects(request: ApprovalRequest, **fields: Any) -> Submission:
    return sent(request, "reject", **fields)


def overtaken(verdict: str, step: Step) -> Build:
    """Send a verdict after something happened that its page does not show."""

    def build(gate: StoreGate) -> Submission:
        request = gate.refund()
        submission = sent(request, verdict)
        step(gate, request)
        return submission

    return build


def revise(gate: StoreGate, request: ApprovalRequest) -> None:
    gate.revise(request, **CHANGES)


def move_parcel(gate: StoreGate, request: ApprovalRequest) -> None:
    change_order(request, "Returned to the depot")
    readings.reread_state(request.sealed.revision)


def reject_as_tom(gate: StoreGate, request: ApprovalRequest) -> None:
    decide(request, gate.tom, "reject", reason_code="unsafe")


REFUSED.add(
    "held", "Tom Example has claimed this until", overtaken("reject", hold_as_tom)
)


@REFUSED.scene("lease-lapsed", "Tom Example claimed the request")
def lease_lapsed(gate: StoreGate) -> Submission:
    request = gate.refund()
    hold = take.take_hold(request_id=request.pk, person=gate.rita)
    submission = rejects(request, hold=hold.token)
    past = clock.now() - timedelta(seconds=1)
    Hold.objects.filter(pk=request.pk).update(until=past)
    gate.hold(request, gate.tom)
    return submission


REFUSED.add(
    "stale", "The request changed while you were reading.", overtaken("reject", revise)
)
REFUSED.add(
    "precondition",
    "changed since this page was loaded",
    overtaken("approve", move_parcel),
)
REFUSED.add("decided", "Tom Example rejected this", overtaken("approve", reject_as_tom))
REFUSED.add(
    "expired",
    "before your decision arrived",
    overtaken("reject", lambda gate, request: factories.overdue(request)),
)
REFUSED.add("withdrawn", "This was withdrawn", overtaken("reject", withdraw))
REFUSED.add(
    "incomplete",
    "This page is incomplete.",
    lambda gate: rejects(gate.refund(), action_hash=""),
)
REFUSED.add(
    "policy",
    "never exceed",
    lambda gate: sent(gate.refund(), "modify", **amount("9500.00")),
)
REFUSED.add(
    "schema",
    "Some fields need correction.",
    lambda gate: sent(gate.refund(), "modify", **amount("much"), **LONG),
)
REFUSED.add(
    "unchanged",
    "Nothing changed. Use Approve.",
    lambda gate: sent(refund(gate), "modify"),
)
REFUSED.add(
    "reason", "Choose a reason.", lambda gate: rejects(refund(gate), reason_code="")
)


@REFUSED.scene("question", "that is not what this request does.")
def question(gate: StoreGate) -> Submission:
    request = refund(gate)
    return sent(request, "approve", answer=0 if right_answer(request) else 1)


REFUSED.add(
    "unanswered",
    "Answer the attention check first.",
    lambda gate: sent(refund(gate), "approve"),
)


@REFUSED.scene("written", "Write your answer first.")
def written(gate: StoreGate) -> Submission:
    gate.adopt(desk={"written_answer": ["high"]})
    return sent(refund(gate), "approve", reason="I have read the letter.")


REFUSED.add(
    "reauth",
    "Confirm your identity",
    lambda gate: sent(gate.address(), "approve", "sue", answer="0"),
    "sue",
)
REFUSED.add(
    "password",
    "not right",
    lambda gate: sent(gate.address(), "approve", "sue", password="wrong", answer="0"),
    "sue",
)


@REFUSED.scene("too-fast", "You opened this")
def too_fast(gate: StoreGate) -> Submission:
    gate.adopt(desk={**PLAIN_DESK, "time_floor": {"high": 3600}})
    request = gate.refund()
    now = clock.now() - timedelta(seconds=3)
    return sent(request, "approve", seen=pages.token(request, rendered_at=now))


@REFUSED.scene("throttle", "You have decided")
def throttled(gate: StoreGate) -> Submission:
    gate.adopt(desk={**PLAIN_DESK, "most_decisions": 1})
    decide(gate.refund(), gate.rita)
    return sent(refund(gate), "approve")


@REFUSED.scene("ceiling", "exceeds your approval limit")
def ceiling(gate: StoreGate) -> Submission:
    gate.rita.ceiling_minor = 5_000
    gate.rita.save()
    return sent(gate.refund("58.00"), "approve")
