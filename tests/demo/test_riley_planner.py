"""What Riley makes of every outcome, and that every case ends."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from demo.riley import planner
from demo.riley.case import MOST_STEPS, Case
from demo.riley.moves import MOVES
from demo.riley.planner import Answer, Finish, Propose

ORDER = {
    "order_id": "78291",
    "status": "delivered",
    "carrier": "Harrow Parcel",
    "carrier_status": "Delivered, left at front door",
    "total": "899.00",
    "refunded": "0.00",
    "currency": "USD",
    "items": [{"sku": "NG-1001"}],
    "customer_id": "C-1017",
    "customer_name": "Casey Lindholm",
    "customer_email": "casey.lindholm@example.net",
}
STOCK = {"sku": "NG-1001", "name": "Laptop", "stock": 3, "price": "899.00"}
EXECUTED = Answer("executed", result={})
CODES = (*planner.REASONS, "", "of_a_later_version")


def refund_case(**known: Any) -> Case:
    """A case that waits for its refund, the order looked up."""
    case = Case(
        thread="order_78291",
        message="m-002",
        intent="not_received",
        agenda=("look_up", "refund", "mail_refund"),
        known={"order_id": "78291", "sender": "a@example.com", **known},
    )
    return waiting(planner.absorb(waiting(case), Answer("executed", result=ORDER)))


def waiting(case: Case) -> Case:
    return proposal(case).case


def proposal(case: Case) -> Propose:
    step = planner.plan(case)
    assert isinstance(step, Propose), step
    return step


def after(case: Case, status: str, **facts: Any) -> Case:
    return planner.absorb(case, Answer(status, **facts))


def tools(case: Case) -> list[str]:
    """What is proposed from here on when everything is carried out."""
    found = []
    while isinstance(step := planner.plan(case), Propose):
        found.append(step.draft.tool)
        case = planner.absorb(step.case, EXECUTED)
    return found


def end(case: Case) -> str:
    while isinstance(step := planner.plan(case), Propose):
        case = planner.absorb(step.case, EXECUTED)
    return step.result


def test_the_look_up_comes_first_and_fills_the_refund():
    draft = proposal(refund_case()).draft
    assert draft.tool == "process_refund"
    assert draft.args == {
        "order_id": "78291",
        "amount": "899.00",
        "currency": "USD",
        "reason": "not_received",
    }


def test_the_same_case_always_gives_the_same_proposal():
    assert planner.plan(refund_case()) == planner.plan(refund_case())


def test_a_case_survives_being_stored():
    case = refund_case()
    assert Case.load(case.dump()) == case


def test_an_executed_refund_is_told_to_the_customer():
    case = after(refund_case(), "executed", result={"amount": "899.00"})
    draft = proposal(case).draft
    assert draft.tool == "send_email"
    assert draft.args["to"] == ["casey.lindholm@example.net"]
    assert "899.00 USD" in draft.args["body"]
    assert end(case) == "completed"


def test_what_a_reviewer_changed_is_what_the_customer_hears():
    final = {**ORDER, "amount": "449.50", "partial": True}
    proposed = {"amount": "899.00"}
    case = after(refund_case(), "executed", final_args=final, proposed=proposed)
    assert "449.50 USD" in proposal(case).draft.args["body"]
    assert "changed by a reviewer" in case.notes[-1]


def test_a_wrong_amount_leads_to_a_smaller_refund_once():
    case = after(refund_case(), "rejected", reason_code="wrong_amount")
    draft = proposal(case).draft
    assert (draft.args["amount"], draft.args["partial"]) == ("449.50", True)
    again = after(waiting(case), "rejected", reason_code="wrong_amount")
    assert tools(again) == ["send_email"]
    assert "replacement" in proposal(again).draft.args["body"]


def test_a_wrong_target_leads_to_a_question_to_the_customer():
    case = after(refund_case(), "rejected", reason_code="wrong_target")
    assert proposal(case).draft.tool == "draft_reply"
    assert "78291" in proposal(case).draft.args["body"]
    assert end(case) == "gave_up"


def test_an_unclear_rationale_is_said_again_with_more_facts_once():
    case = after(refund_case(), "rejected", reason_code="unclear")
    draft = proposal(case).draft
    assert draft.tool == "process_refund"
    assert "899.00 USD in total" in draft.rationale
    again = after(waiting(case), "rejected", reason_code="unclear")
    assert tools(again) == ["draft_reply"]


@pytest.mark.parametrize("code", ["skip", "not_needed", "duplicate"])
def test_skip_means_carry_on_without_it(code):
    case = after(refund_case(), "rejected", reason_code=code)
    assert tools(case) == []
    assert end(case) == "completed"


@pytest.mark.parametrize("code", ["unsafe", "policy"])
def test_a_matter_of_principle_ends_the_case_with_an_apology(code):
    case = after(refund_case(), "rejected", reason_code=code)
    assert tools(case) == ["draft_reply"]
    assert end(case) == "gave_up"


@pytest.mark.parametrize("code", ["other", "", "of_a_later_version"])
def test_any_other_reason_leads_to_a_replacement(code):
    case = after(refund_case(), "rejected", reason_code=code)
    assert tools(case) == ["send_email"]
    assert end(case) == "completed"


def test_a_rejected_label_does_not_end_the_case():
    case = Case("t", "m", "damaged", ("label", "reply"), {"did": {"look_up": ORDER}})
    case = after(waiting(case), "rejected", reason_code="policy")
    assert tools(case) == ["draft_reply"]
    assert end(case) == "completed"


def test_a_refund_blocked_beyond_the_total_asks_for_what_is_left():
    case = after(refund_case(amount="5000.00"), "blocked", rules=("refund.over_order",))
    assert proposal(case).draft.args["amount"] == "899.00"
    again = after(waiting(case), "blocked", rules=("refund.over_order",))
    assert tools(again) == ["draft_reply"]
    assert end(again) == "gave_up"


def test_a_blocked_tool_of_the_message_does_not_end_the_case():
    known = {
        "wire": {"amount": "1.00", "currency": "USD", "account": "1"},
        "did": {"look_up": ORDER},
    }
    case = Case("t", "m", "status", ("wire", "reply"), known)
    assert proposal(case).draft.tool == "wire_money"
    case = after(waiting(case), "blocked", rules=("tool.unknown",))
    assert tools(case) == ["draft_reply"]
    assert end(case) == "completed"


def test_an_expired_request_is_asked_again_until_somebody_answers():
    case = refund_case()
    for _ in range(5):
        case = after(case, "expired")
        assert proposal(case).draft.tool == "process_refund"
        case = waiting(case)
    case = after(case, "rejected", reason_code="wrong_amount")
    assert proposal(case).draft.args["amount"] == "449.50"


def test_a_case_that_nobody_ever_answers_ends():
    case = after(refund_case(), "expired")
    while isinstance(step := planner.plan(case), Propose):
        case = after(step.case, "expired")
    assert step.result == "gave_up"
    assert case.steps == MOST_STEPS


def test_a_refund_beyond_the_total_looks_again_and_takes_what_is_left():
    case = after(refund_case(), "failed", code="beyond_total")
    assert proposal(case).draft.tool == "look_up_order"
    fresh = {**ORDER, "refunded": "449.50"}
    case = after(waiting(case), "executed", result=fresh)
    assert proposal(case).draft.args["amount"] == "449.50"


def test_nothing_is_refunded_where_nothing_is_left():
    case = after(refund_case(), "refused", code="precondition")
    fresh = {**ORDER, "refunded": "899.00"}
    case = after(waiting(case), "executed", result=fresh)
    assert tools(case) == []


def test_another_failure_ends_the_case_with_an_apology():
    case = after(refund_case(), "failed", code="wrong_currency")
    assert tools(case) == ["draft_reply"]
    assert end(case) == "gave_up"


def test_a_refusal_before_the_effect_looks_again_and_asks_again_once():
    case = after(refund_case(), "refused", code="precondition")
    case = after(waiting(case), "executed", result=ORDER)
    assert proposal(case).draft.tool == "process_refund"
    again = after(waiting(case), "refused", code="precondition")
    assert "process_refund" not in tools(again)


def test_an_unknown_outcome_is_never_repeated():
    case = after(refund_case(), "unknown")
    assert tools(case) == ["draft_reply"]
    assert "not known" in proposal(case).draft.args["body"]
    assert end(case) == "gave_up"


@pytest.mark.parametrize("status", ["withdrawn", "superseded", "of_a_later_version"])
def test_a_case_taken_away_is_left_alone(status):
    case = after(refund_case(), status)
    assert tools(case) == []
    assert end(case) == "gave_up"


def test_what_the_gate_does_not_take_fails_the_case_if_it_mattered():
    assert end(planner.turned_away(refund_case(), "invalid_args")) == "failed"
    known = {"did": {"look_up": ORDER}}
    label = Case("t", "m", "damaged", ("label", "reply"), known)
    assert tools(planner.turned_away(waiting(label), "tool_not_allowed")) == [
        "draft_reply"
    ]


def test_a_case_ends_after_25_proposals_whatever_happens():
    case = refund_case()
    assert planner.plan(
        Case(case.thread, case.message, case.intent, case.agenda, steps=MOST_STEPS)
    ) == Finish("gave_up")


STATUSES = [s for s in planner.OUTCOMES if s != "rejected"]
ANSWERS = [
    *[Answer(status, result=ORDER, rules=("r",)) for status in STATUSES],
    Answer("failed", code="beyond_total"),
    *[Answer("rejected", reason_code=code) for code in CODES],
]


@pytest.mark.parametrize("move", sorted(MOVES))
@pytest.mark.parametrize("answer", ANSWERS, ids=lambda a: f"{a.status}-{a.reason_code}")
def test_every_move_reacts_to_every_outcome(move, answer):
    known = {
        "order_id": "78291",
        "customer_id": "C-1017",
        "sender": "a@example.com",
        "address": {"line1": "1 A Street"},
        "listed": ["b@example.com"],
        "label_told": "vip",
        "wire": {"amount": "1.00"},
        "did": {
            "look_up": ORDER,
            "stock": STOCK,
            "refund": ORDER | {"amount": "1.00"},
            "return_label": {"tracking": "HA-1"},
        },
    }
    case = Case("t", "m", "damaged", (move, "reply"), known)
    case = planner.absorb(waiting(case), answer)
    assert end(case) in {"completed", "gave_up", "failed"}


def test_every_case_ends_whatever_the_outcomes():
    chance = random.Random(7)
    for _ in range(300):
        case, steps = refund_case(), itertools.count()
        while isinstance(step := planner.plan(case), Propose):
            case = planner.absorb(step.case, chance.choice(ANSWERS))
            assert next(steps) <= MOST_STEPS
