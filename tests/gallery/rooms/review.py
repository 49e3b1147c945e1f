"""The review page of what waits: free, held, changed, moved, handed up and down."""

from __future__ import annotations

from datetime import timedelta

from playwright.sync_api import Page, expect

from journal import clock
from reviews.batches import formation
from reviews.choices import NoteKind
from reviews.decisions import drafts, recall, returns
from reviews.holds import take
from reviews.models import ApprovalRequest
from tests import factories
from tests.browser.conftest import look
from tests.factories import decide
from tests.gallery import shop
from tests.gallery.scene import Room
from tests.gallery.stage import Stage, path

ROOM = Room("review")
REVIEW = "reviews:request_detail"
MINE = "You hold this until"


def newest() -> ApprovalRequest:
    """What is open in the browser: the scene has just made it."""
    return ApprovalRequest.objects.latest("opened_at")


@ROOM.scene("waiting", REVIEW, "Waiting", who="sue")
def waiting(stage: Stage) -> str:
    return path(stage.refund())


@ROOM.scene("mine", REVIEW, MINE)
def mine(stage: Stage) -> str:
    return path(stage.refund("59.00"))


@ROOM.scene("medium", REVIEW, MINE)
def medium(stage: Stage) -> str:
    return path(stage.label())


@ROOM.scene("mail", REVIEW, MINE)
def mail(stage: Stage) -> str:
    return path(stage.mail())


@ROOM.scene("critical", REVIEW, MINE, who="sue")
def critical(stage: Stage) -> str:
    return path(stage.address())


@ROOM.scene("onlooker", REVIEW, "You can read everything here.", who="otto")
def onlooker(stage: Stage) -> str:
    return path(stage.refund("45.00"))


@ROOM.scene("held", REVIEW, "Tom Example is deciding")
def held(stage: Stage) -> str:
    request = stage.refund()
    take.take_hold(request_id=request.pk, person=stage.tom)
    return path(request)


@ROOM.scene("held-supervisor", REVIEW, "Break hold…", who="sue")
def held_supervisor(stage: Stage) -> str:
    return held(stage)


@ROOM.scene("held-offered", REVIEW, "offers it to you")
def held_offered(stage: Stage) -> str:
    request = stage.refund()
    take.take_hold(request_id=request.pk, person=stage.tom)
    take.offer_hold(request_id=request.pk, person=stage.tom, to=stage.rita)
    return path(request)


@ROOM.scene("hold-broken", REVIEW, "ended your hold")
def hold_broken(stage: Stage) -> str:
    request = stage.refund()
    take.take_hold(request_id=request.pk, person=stage.rita)
    take.break_hold(request_id=request.pk, person=stage.sue, reason="lunch")
    take.take_hold(request_id=request.pk, person=stage.tom)
    return path(request)


def _revised(stage: Stage, page: Page) -> None:
    expect(page.get_by_test_id("state")).to_contain_text(MINE)
    request = newest()
    args = {**request.sealed.revision.args, "amount": "58.50", "partial": True}
    factories.revised(stage.agent, request.proposal, args)
    look(page)


@ROOM.scene("changed", REVIEW, "Below is version 1, as you", act=_revised)
def changed(stage: Stage) -> str:
    return path(stage.refund())


@ROOM.scene("again", REVIEW, "Since version 1, which you read")
def again(stage: Stage) -> str:
    request = stage.refund()
    args = {**request.sealed.revision.args, "amount": "58.50", "partial": True}
    factories.revised(stage.agent, request.proposal, args)
    return f"{path(request)}?since=1"


def _moved(stage: Stage, page: Page) -> None:
    expect(page.get_by_test_id("state")).to_contain_text(MINE)
    page.keyboard.press("c")
    expect(page.get_by_test_id("state")).to_contain_text("Waiting")
    order = newest().sealed.revision.args["order_id"]
    shop.changed(order, "Returned parcel received at depot")
    page.keyboard.press("c")


@ROOM.scene("moved", REVIEW, "Refresh before-state", act=_moved)
def moved(stage: Stage) -> str:
    return path(stage.refund())


@ROOM.scene("second", REVIEW, "1 of 2 approvals", who="sam")
def second(stage: Stage) -> str:
    return path(decide(stage.refund("610.00", "78291"), stage.sue))


@ROOM.scene("voted", REVIEW, "Your approval is recorded.", who="sue")
def voted(stage: Stage) -> str:
    request = stage.address()
    return path(decide(request, stage.sue, reason_code="verified"))


@ROOM.scene("escalated", REVIEW, "You escalated this.")
def escalated(stage: Stage) -> str:
    request = stage.refund()
    said = {"reason_code": "unclear", "reason": "Two parcels, one of them came."}
    return path(decide(request, stage.rita, "escalate", **said))


@ROOM.scene("returned", REVIEW, "Returned with guidance by a supervisor.", who="tom")
def returned(stage: Stage) -> str:
    request = stage.refund()
    decide(request, stage.rita, "escalate", reason_code="unclear")
    advice = "Ask the customer which of the two parcels is missing, then decide."
    returns.return_with_guidance(
        request_id=request.pk, person=stage.sue, guidance=advice
    )
    return path(request)


@ROOM.scene("recalled", REVIEW, "Recalled. Nothing was executed.", who="sue")
def recalled(stage: Stage) -> str:
    request = decide(stage.refund(), stage.rita)
    recall.recall_approval(request_id=request.pk, person=stage.rita)
    return path(request)


@ROOM.scene("batch-member", REVIEW, "In a batch of 3.")
def batch_member(stage: Stage) -> str:
    for amount in ("8.00", "9.50", "12.00"):
        stage.refund(amount, group="crackling speakers")
    formation.form_missed_batches()
    return path(newest())


@ROOM.scene("draft", REVIEW, "What you typed at")
def draft(stage: Stage) -> str:
    request = stage.refund()
    stage.typed(request)
    return path(request)


@ROOM.scene("remarks", REVIEW, "I rang them; nobody answers.")
def remarks(stage: Stage) -> str:
    request = stage.refund()
    drafts.add_note(
        request_id=request.pk,
        person=stage.rita,
        kind=NoteKind.NOTE,
        text="I rang them; nobody answers.",
    )
    return path(request)


@ROOM.scene("soon", REVIEW, "Extend")
def soon(stage: Stage) -> str:
    request = stage.refund()
    end = clock.now() + timedelta(minutes=4)
    ApprovalRequest.objects.filter(pk=request.pk).update(expires_at=end)
    return path(request)


def _offline(stage: Stage, page: Page) -> None:
    expect(page.get_by_test_id("state")).to_contain_text(MINE)
    page.context.set_offline(True)
    look(page)


@ROOM.scene("offline", REVIEW, "Not connected since", act=_offline, cut_off=True)
def offline(stage: Stage) -> str:
    return path(stage.refund())


def _signed_out(stage: Stage, page: Page) -> None:
    expect(page.get_by_test_id("state")).to_contain_text(MINE)
    page.context.clear_cookies()
    look(page)


@ROOM.scene("signed-out", REVIEW, "You are signed out.", act=_signed_out)
def signed_out(stage: Stage) -> str:
    return path(stage.refund())


@ROOM.scene("ceiling", REVIEW, "This amount is above what you may decide.")
def ceiling(stage: Stage) -> str:
    """The last one: from here on rita may decide less."""
    stage.rita.ceiling_minor = 5_000
    stage.rita.save()
    return path(stage.refund("58.00"))
