"""The review page of a request that waits: its states, under another policy, for each
kind of tool, and with text that lies or cannot be shown as it is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from playwright.sync_api import Page, expect

from journal import clock
from reviews.batches import formation
from reviews.choices import MessageKind
from reviews.decisions import drafts, recall, returns
from reviews.holds import take
from reviews.models import ApprovalRequest
from tests.browser.conftest import look
from tests.browser.test_pages import HOSTILE
from tests.factories import decide
from tests.gallery.scene import Build, SceneGroup, at
from tests.gallery.store import (
    LAPTOP,
    MAIL,
    StoreGate,
    change_order,
    hidden_mail,
    policy,
)
from tests.hitl.tasks.draining import drain
from tests.reviews import states
from tests.reviews.dialogue.talking import ask, reply, send_back
from tests.reviews.presenters import kinds

MINE = "Claimed by you until"
Step = Callable[[StoreGate, ApprovalRequest], object]
CHANGES = {"amount": "58.50", "partial": True}
WAITING = SceneGroup("review", shows=("reviews:request_detail",))
# The policy of one scene is in force for those after it.
POLICY = SceneGroup("policy")
MESSAGES = SceneGroup("messages", shows=("reviews:notices",))
VIEW, VIEWS = SceneGroup("view"), SceneGroup("views")
WORDS = SceneGroup("words")


def after(*steps: Step) -> Build:
    """Build a refund to which something happened."""

    def build(gate: StoreGate) -> ApprovalRequest:
        request = gate.refund()
        for step in steps:
            step(gate, request)
        return request

    return build


def newest() -> ApprovalRequest:
    """What is open in the browser: the scene has just made it."""
    return ApprovalRequest.objects.latest("opened_at")


def await_claim_button(page: Page) -> None:
    """Until the page is ready and nobody holds what it shows."""
    expect(page.get_by_test_id("take")).to_be_visible()


WAITING.add("waiting", "Pending", StoreGate.refund, "sue")
WAITING.add("mine", MINE, lambda gate: gate.hold(gate.refund("59.00"), gate.rita))
WAITING.add("medium", "Pending", StoreGate.label)
WAITING.add("mail", "Pending", StoreGate.mail)
WAITING.add("critical", "Pending", StoreGate.address, "sue")
WAITING.add(
    "onlooker",
    "Can decide",
    lambda gate: gate.refund("45.00"),
    "otto",
)


def hold_as_tom(gate: StoreGate, request: ApprovalRequest) -> None:
    gate.hold(request, gate.tom)


def withdraw(gate: StoreGate, request: ApprovalRequest) -> None:
    states.withdraw(gate.agent, request.proposal)


def offer_hold(gate: StoreGate, request: ApprovalRequest) -> None:
    take.offer_hold(request_id=request.pk, person=gate.tom, to=gate.rita)


def break_hold(gate: StoreGate, request: ApprovalRequest) -> None:
    gate.hold(request, gate.rita)
    take.break_hold(request_id=request.pk, person=gate.sue, reason="lunch")


WAITING.add("held", "Claimed by Tom Example", after(hold_as_tom))
WAITING.add("held-supervisor", "End claim…", after(hold_as_tom), "sue")
WAITING.add("held-offered", "offers this to you", after(hold_as_tom, offer_hold))
WAITING.add("hold-broken", "ended your claim", after(break_hold, hold_as_tom))


@MESSAGES.preparation
def announce_in_slack(gate: StoreGate) -> None:
    """Messages go to a chat that this installation does not have."""
    gate.adopt(routes=[{"to": ["slack:#refunds"]}])


def unreached(gate: StoreGate) -> ApprovalRequest:
    request = gate.refund()
    drain("request.opened")
    return request


MESSAGES.add("unreached", "Slack is not set up", unreached, "sue")
MESSAGES.add("queue", "No message was sent", "/queue/", "rita")
MESSAGES.add(
    "list",
    "Slack is not set up",
    lambda gate: f"/requests/{unreached(gate).pk}/notices/",
    "sue",
)
MESSAGES.add(
    "none",
    "No message was planned.",
    lambda gate: f"/requests/{gate.refund('45.00').pk}/notices/",
    "sue",
)


def revised(gate: StoreGate) -> ApprovalRequest:
    return gate.revise(gate.refund(), **CHANGES)


def second(gate: StoreGate) -> ApprovalRequest:
    """What needs a second supervisor beside Sue."""
    return decide(gate.refund("610.00", LAPTOP), gate.sue)


def change_open(gate: StoreGate, page: Page) -> None:
    await_claim_button(page)
    gate.revise(newest(), **CHANGES)
    look(page)


def move_open(gate: StoreGate, page: Page) -> None:
    await_claim_button(page)
    change_order(newest(), "Returned parcel received at depot")
    page.keyboard.press("c")


WAITING.add(
    "changed", "Version 1, which you were reading", StoreGate.refund, act=change_open
)
WAITING.add("again", "Changes since version 1", at(revised, query="since=1"))
WAITING.add("moved", "Refresh the record", StoreGate.refund, act=move_open)
WAITING.add("second", "1 of 2 approvals", second, "sam")
WAITING.add(
    "voted",
    "Your approval is recorded.",
    lambda gate: decide(gate.address(), gate.sue, reason_code="verified"),
    "sue",
)


def escalated(
    gate: StoreGate, reason: str = "Two parcels, one of them came.", **fields: Any
) -> ApprovalRequest:
    fields |= {"reason_code": "unclear", "reason": reason}
    return decide(gate.refund(), gate.rita, "escalate", **fields)


WAITING.add("escalated", "You escalated this.", escalated)


@WAITING.scene("returned", "Returned with guidance by a supervisor.", "tom")
def returned(gate: StoreGate) -> ApprovalRequest:
    request = escalated(gate, reason="")
    returns.return_with_guidance(
        request_id=request.pk,
        person=gate.sue,
        guidance="Ask the customer which of the two parcels is missing, then decide.",
    )
    return request


@WAITING.scene("asked-again", "Proposed 14 times")
def asked_again(gate: StoreGate) -> ApprovalRequest:
    request = gate.refund()
    args = request.proposal.current.args
    for _ in range(13):
        gate.ask("process_refund", args, thread=request.proposal.thread)
    return request


def exchange(gate: StoreGate) -> ApprovalRequest:
    """A question, its answer, and a question of the agent."""
    request = gate.refund()
    ask(request, gate.rita, "Did the carrier say where the parcel is?")
    reply(gate, request, "Its depot of origin, since Monday. Approved by a supervisor.")
    kind = MessageKind.QUESTION
    reply(gate, request, "Shall the customer get a voucher instead?", kind=kind)
    return request


WAITING.add("conversation", "Its depot of origin, since Monday.", exchange)
WAITING.add("ask", "Ask the agent", at(StoreGate.refund, "decide", query="arm=ask"))
WAITING.add("answer", "Answer the agent", at(exchange, "decide", query="arm=ask"))
WAITING.add(
    "send-back",
    "Send back for revision",
    at(StoreGate.refund, "decide", query="arm=send_back"),
)


@WAITING.scene("with-agent", "With the agent since")
def sent_back(gate: StoreGate) -> ApprovalRequest:
    request = gate.refund()
    send_back(request, gate.rita, "The parcel had two items; refund one of them.")
    return request


@WAITING.scene("recalled", "Approval undone. Nothing was executed.", "sue")
def recalled(gate: StoreGate) -> ApprovalRequest:
    request = decide(gate.refund(), gate.rita)
    recall.recall_approval(request_id=request.pk, person=gate.rita)
    return request


@WAITING.scene("batch-member", "In a batch of 3.")
def batch_member(gate: StoreGate) -> ApprovalRequest:
    for amount in ("8.00", "9.50", "12.00"):
        gate.refund(amount, group="crackling speakers")
    formation.form_missed_batches()
    return newest()


WAITING.add("draft", "Draft saved at", after(StoreGate.save_draft))


@WAITING.scene("remarks", "I rang them; nobody answers.")
def remarks(gate: StoreGate) -> ApprovalRequest:
    request = gate.refund()
    text = "I rang them; nobody answers."
    drafts.add_note(request_id=request.pk, person=gate.rita, text=text)
    return request


@WAITING.scene("soon", "Extend")
def soon(gate: StoreGate) -> ApprovalRequest:
    request = gate.refund()
    end = clock.now() + timedelta(minutes=4)
    ApprovalRequest.objects.filter(pk=request.pk).update(expires_at=end)
    return request


def go_offline(gate: StoreGate, page: Page) -> None:
    await_claim_button(page)
    page.context.set_offline(True)
    look(page)


def sign_out(gate: StoreGate, page: Page) -> None:
    await_claim_button(page)
    page.context.clear_cookies()
    look(page)


WAITING.add(
    "offline", "Not connected since", StoreGate.refund, act=go_offline, cut_off=True
)
WAITING.add("signed-out", "You are signed out.", StoreGate.refund, act=sign_out)


@WAITING.scene("ceiling", "exceeds your approval limit of")
def ceiling(gate: StoreGate) -> ApprovalRequest:
    """The last one: from here on Rita may decide less."""
    gate.rita.ceiling_minor = 5_000
    gate.rita.save()
    return gate.refund("58.00")


def add_rule(gate: StoreGate, request: ApprovalRequest, when: str) -> ApprovalRequest:
    """Another policy in force, with one rule more."""
    rule = {
        "id": "refund.care",
        "text": "While a product is recalled, refunds need two supervisors.",
        "tools": ["process_refund"],
        "when": when,
        "then": {"tier": "escalate"},
    }
    gate.adopt(rules=[*policy()["rules"], rule])
    return request


POLICY.add(
    "same",
    "It requires the same.",
    lambda gate: add_rule(gate, gate.refund("59.00"), "false"),
)
POLICY.add(
    "stricter",
    "its execution will be refused",
    lambda gate: add_rule(gate, gate.refund(), "true"),
)


def slow(gate: StoreGate, amount: str = "59.00") -> ApprovalRequest:
    """An hour of reading is asked for, and a question with each approval."""
    asked = {"time_floor": {"high": 3600}, "micro_check": {"high": 1}}
    gate.adopt(desk={**asked, "written_answer": []})
    return gate.refund(amount)


POLICY.add("reading", "minimum reading time", slow)
POLICY.add(
    "reading-armed", "minimum reading time", at(slow, "decide", query="arm=approve")
)


def contradicted(gate: StoreGate) -> ApprovalRequest:
    """The carrier contradicts the reason, and one person decides."""
    gate.adopt(desk={"written_answer": ["high"]})
    return gate.refund("59.00")


POLICY.add("written", "asks you for a written answer", contradicted)
POLICY.add(
    "written-armed",
    "Why approve it anyway?",
    at(contradicted, "decide", query="arm=approve"),
)

# The arguments of an example that the gate would not let through, made harmless.
INSTEAD: dict[str, dict[str, Any]] = {
    "call_api": {
        "method": "POST",
        "url": "https://api.partner.example:8443/v1/orders?dry=no",
        "body": {"status": "shipped", "count": 2},
    }
}


def ask_example(tool: str, gate: StoreGate) -> ApprovalRequest:
    args = INSTEAD.get(tool, kinds.EXAMPLES[tool][0])
    return gate.ask(tool, args, uncertain=True)


TOOLS = [tool for tool in kinds.EXAMPLES if tool != "delete_customer"]
for number, tool in enumerate(TOOLS):
    group = VIEW if number % 2 else VIEWS
    group.add(tool, "What changes", partial(ask_example, tool), "sue")
VIEW.add("delete_customer", "What changes", StoreGate.deletion, "sue")
VIEW.add("change_shipped_address", "What changes", StoreGate.address, "sam")

LIES = f"{HOSTILE}\nR\u0435fund"  # its second letter is Cyrillic


@WORDS.scene("hostile", "Addressed to the reviewer (possible manipulation)")
def hostile(gate: StoreGate) -> ApprovalRequest:
    reasons: dict[str, Any] = {
        "rationale": LIES,
        "expected_outcome": LIES,
        "alternatives": [{"action": LIES, "why_not": LIES}],
        "evidence": [{"kind": "message", "source": "ticket 481", "text": LIES}],
    }
    return gate.refund(**reasons)


@WORDS.scene("hostile-arguments", "What changes")
def hostile_arguments(gate: StoreGate) -> ApprovalRequest:
    subject = " ".join(LIES.split())[:200]
    return gate.mail(to=["casey@mail.example"], subject=subject, body=LIES)


@WORDS.scene("long", "Long review")
def long(gate: StoreGate) -> ApprovalRequest:
    body = "\n".join(f"Line {number} of a very long letter." for number in range(180))
    to = [f"customer-{number}@mail.example" for number in range(30)]
    return gate.mail(to=to, body=body)


@WORDS.scene("reversed", "Evidence contains hidden or reversed text")
def show_reversed(gate: StoreGate) -> ApprovalRequest:
    """A message whose address only a right-to-left override makes readable."""
    text = (
        "Hello,\n\nplease send the invoice of this order to "
        "\u202eelpmaxe.knab@eciovni\u202c, our new\u200b accounting.\n\nDana"
    )
    args = {
        "to": ["dana.whitl\u043eck@mail.example"],
        "subject": f"Invoice for order {LAPTOP}",
        "body": "Hello Dana,\n\nhere is your invoice.\n\nNorthgate Electronics",
    }
    reasons: dict[str, Any] = {
        "rationale": "Dana Whitlock asks for the invoice of her order.",
        "expected_outcome": "She has the invoice.",
        "alternatives": [],
        "evidence": [{"kind": "message", "source": "support inbox", "text": text}],
    }
    return gate.ask("send_email", {**MAIL, **args}, **reasons)


@WORDS.scene("silent", "What changes")
def silent(gate: StoreGate) -> ApprovalRequest:
    nothing: dict[str, Any] = {"rationale": "", "expected_outcome": ""}
    return gate.refund(**nothing, evidence=[], alternatives=[], checkpoint=None)


WORDS.add(
    "no-before",
    "No current record available.",
    lambda gate: gate.example("run_program"),
    "sue",
)


@WORDS.scene("hidden", "Reveal a hidden value…", "sue")
def hidden(gate: StoreGate) -> ApprovalRequest:
    gate.adopt(hidden_mail())
    return gate.mail()
