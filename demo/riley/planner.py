"""What Riley does next, and how it reacts to each outcome. Pure: no clock, no network.

Every reaction either shortens the agenda or counts a try, so a case always ends, after
at most `MAX_STEPS` proposals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_DOWN, Decimal
from typing import Final

from counterseal_client import Proposal

from .actions import Draft, build_draft, choose_amount, compute_refundable
from .cases import SPECS, Case

MAX_STEPS = 25
MAX_TRIES = 2
"""How often Riley proposes one action before it gives the action up."""
ESSENTIAL = frozenset(SPECS["essential"])
GAVE_UP: Final = "gave_up"
CENT = Decimal("0.01")


def plan_step(case: Case) -> tuple[Case, Draft | None]:
    """The case with its next proposal counted, and the draft to propose. Without a
    draft the case is over, and its result is `completed`, `gave_up` or `failed`."""
    if case.steps >= MAX_STEPS:
        return case.turn_to(result=GAVE_UP), None
    while case.action:
        if draft := build_draft(case):
            return replace(case.count_try(), steps=case.steps + 1), draft
        case = case.skip()
    return case, None


def absorb_outcome(case: Case, proposal: Proposal) -> Case:
    """The case after the outcome of the proposal that it waited for."""
    decision, execution, status = proposal.decision, proposal.execution, proposal.status
    if status == "executed":
        args = (decision and decision.final_args) or {}
        result = (execution and execution.result) or {}
        if decision and decision.verdict == "modify":
            case = case.note("done as changed by a reviewer")
        if case.action == "replacement":
            case = replace(case, result="completed")
        return case.complete({**args, **result})
    code = (execution and execution.code) or (decision and decision.reason_code) or ""
    details = [code] if code else [rule.id for rule in proposal.policy.rules]
    case = case.note(", ".join([status, *details]))
    if status in REACTIONS:
        return REACTIONS[status](case, code)
    # Somebody withdrew or replaced the proposal: the case is not Riley's any more.
    return case.turn_to(result=GAVE_UP)


def absorb_refusal(case: Case, code: str) -> Case:
    """The case after the gate refused to take its proposal, for good."""
    case = case.note(f"not taken, {code}")
    if case.action in ESSENTIAL:
        return case.turn_to(result="failed")
    return case.skip()


def build_answer(case: Case) -> str:
    """What Riley can say to any question: what it knows, and what it would do next."""
    did = ", ".join(case.known.get("did", {})) or "nothing"
    ahead = ", ".join(case.agenda) or "nothing"
    lines = [
        "I follow fixed rules and cannot answer in other words. This is what I know.",
        f"The message is about: {case.intent.replace('_', ' ')}.",
        f"Done so far: {did}. Still to do: {ahead}.",
    ]
    if order := case.order:
        lines.append(
            f"The store says of order {order['order_id']}: {order['status']}, total"
            f" {order['total']} {order['currency']}, refunded {order['refunded']}."
        )
    return " ".join(lines)


def _react_to_rejection(case: Case, code: str) -> Case:
    """A person said no. The reason's code says what to try instead."""
    if case.action not in ESSENTIAL:
        return case.skip()
    return REASONS.get(code, _try_another_way)(case)


def _react_to_block(case: Case, code: str) -> Case:
    """The policy forbids it for everybody: only another action can help."""
    left = compute_refundable(case)
    if case.action == "refund" and CENT <= left < Decimal(choose_amount(case)):
        return case.learn(amount=str(left))
    return _do_without(case)


def _react_to_failure(case: Case, code: str) -> Case:
    """The effect did not happen. Look up the order again where its state was the
    cause."""
    return _look_up_again(case) if code == "beyond_total" else _do_without(case)


def _halve_amount(case: Case) -> Case:
    """Half the amount, once; for what has no amount, ask."""
    if case.action != "refund":
        return _ask_customer(case)
    if case.tries["refund"] >= MAX_TRIES:
        return _try_another_way(case)
    half = (Decimal(choose_amount(case)) / 2).quantize(CENT, ROUND_DOWN)
    return case.learn(amount=str(half))


def _ask_customer(case: Case) -> Case:
    """Ask the customer, and leave the rest until they answer."""
    order = case.known.get("order_id", "your order")
    question = f"whether everything you wrote about {order} is right"
    return case.learn(question=question).turn_to("ask", result=GAVE_UP)


def _explain(case: Case) -> Case:
    """Say it again with more of the facts, once."""
    if case.known.get("explain"):
        return _apologise(case)
    return case.learn(explain=True)


def _try_another_way(case: Case) -> Case:
    """A replacement instead of money, a draft instead of a mail."""
    if case.action == "refund":
        return case.turn_to("replacement", result=GAVE_UP)
    if case.action in ("mail_document", "mail_listed"):
        return case.turn_to("reply", result=GAVE_UP)
    return _ask_customer(case)


def _apologise(case: Case) -> Case:
    """Tell the customer that it does not work, and stop."""
    return case.turn_to("apologise", result=GAVE_UP)


def _do_without(case: Case) -> Case:
    return _apologise(case) if case.action in ESSENTIAL else case.skip()


def _look_up_again(case: Case) -> Case:
    """Look up the order and try once more: a refund then takes at most what is left."""
    if case.tries[case.action] >= MAX_TRIES:
        return _do_without(case)
    if case.action == "look_up":
        return case
    return case.learn(fresh=True).turn_to("look_up", *case.agenda)


REASONS: dict[str, Callable[[Case], Case]] = {
    "skip": Case.skip,
    "not_needed": Case.skip,
    "duplicate": Case.skip,
    "wrong_amount": _halve_amount,
    "wrong_target": _ask_customer,
    "unclear": _explain,
    "unsafe": _apologise,
    "policy": _apologise,
    "other": _try_another_way,
}
REACTIONS: dict[str, Callable[[Case, str], Case]] = {
    "rejected": _react_to_rejection,
    "blocked": _react_to_block,
    # Nobody had the time. A try that nobody answered does not count, so the requests
    # that the README names wait whenever somebody opens the queue.
    "expired": lambda case, code: case.count_try(-1),
    "failed": _react_to_failure,
    # People approved it, but the order changed before the effect began.
    "refused": lambda case, code: _look_up_again(case),
    # The effect may have happened, and only a person may repeat it.
    "unknown": lambda case, code: case.turn_to("note_unknown", result=GAVE_UP),
}
