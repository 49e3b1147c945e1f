"""What Riley does next, and what it makes of each outcome. Pure: no clock, no network.

Every reaction either shortens the agenda or counts a try, so a case always ends, after
at most 25 proposals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import ROUND_DOWN, Decimal
from typing import Any

from .case import MOST_STEPS, Case
from .moves import MOVES, Draft

ESSENTIAL = frozenset(
    {
        "look_up",
        "refund",
        "return_label",
        "redirect",
        "delete",
        "mail_document",
        "mail_listed",
    }
)
"""Moves without which the customer did not get what they asked for."""

MOST_TRIES = 2
"""How often one move is proposed, in whatever form, before Riley gives it up."""

GAVE_UP = "gave_up"
CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Answer:
    """How a proposal ended, as the gate says it."""

    status: str
    reason_code: str = ""
    reason: str = ""
    proposed: Mapping[str, Any] = field(default_factory=dict)
    final_args: Mapping[str, Any] | None = None
    result: Mapping[str, Any] | None = None
    code: str = ""
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Propose:
    """Propose this. `case` is the case as it then waits, the proposal counted."""

    draft: Draft
    case: Case


@dataclass(frozen=True, slots=True)
class Finish:
    """The case is over: `completed`, `gave_up` or `failed`."""

    result: str


def plan(case: Case) -> Propose | Finish:
    """The next step of a case that waits for nothing."""
    if case.steps >= MOST_STEPS:
        return Finish(GAVE_UP)
    while case.move:
        draft = MOVES[case.move](case)
        if draft is not None:
            return Propose(draft, case.proposed())
        case = case.drop()
    return Finish(case.result)


def proposed(case: Case) -> Mapping[str, Any]:
    """The arguments of the proposal that a case waits for."""
    draft = MOVES[case.move](case) if case.move else None
    return draft.args if draft else {}


def absorb(case: Case, answer: Answer) -> Case:
    """The case after the outcome of the move it waited for."""
    return OUTCOMES.get(answer.status, _no_way)(case, answer)


def turned_away(case: Case, code: str) -> Case:
    """The case after the gate refused even to take the proposal, for good."""
    note = f"{case.move}: refused, {code}"
    if case.move in ESSENTIAL:
        return case.noted(note).go(result="failed")
    return case.drop(note)


def _executed(case: Case, answer: Answer) -> Case:
    """Carried out, perhaps otherwise than proposed: what counts is what was done."""
    final = answer.final_args
    changed = final is not None and dict(final) != dict(answer.proposed)
    note = f"{case.move}: done as changed by a reviewer" if changed else ""
    helped = "completed" if case.move == "replacement" else ""
    after = case.done({**(final or {}), **(answer.result or {})}).noted(note)
    return after.go(*after.agenda, result=helped)


def _rejected(case: Case, answer: Answer) -> Case:
    """A person said no. The reason's code says what to try instead."""
    case = case.noted(f"{case.move}: rejected, {answer.reason_code or 'other'}")
    if case.move not in ESSENTIAL:
        return case.drop()
    return REASONS.get(answer.reason_code, _another_way)(case)


def _carry_on(case: Case) -> Case:
    """Do not do this, and go on without it."""
    return case.drop()


def _smaller(case: Case) -> Case:
    """Half the amount, once; for what has no amount, ask."""
    if case.move != "refund":
        return _question(case)
    if case.tried("refund") >= MOST_TRIES:
        return _another_way(case)
    return case.learn(amount=_half(_asked(case)))


def _question(case: Case) -> Case:
    """Ask the customer, and leave the rest until they answer."""
    order = case.known.get("order_id", "your order")
    what = f"whether everything you wrote about {order} is right"
    return case.learn(question=what).go("ask", result=GAVE_UP)


def _explain(case: Case) -> Case:
    """Say it again with more of the facts, once."""
    if case.known.get("explain"):
        return _no_more(case)
    return case.learn(explain=True)


def _another_way(case: Case) -> Case:
    """What else could help: a replacement for money, a draft for a mail."""
    if case.move == "refund" and not case.tried("replacement"):
        return case.go("replacement", result=GAVE_UP)
    if case.move in ("mail_document", "mail_listed"):
        return case.go("reply", result=GAVE_UP)
    return _question(case)


def _no_more(case: Case) -> Case:
    """Tell the customer that it does not work, and stop."""
    return case.go("apologise", result=GAVE_UP)


def _blocked(case: Case, answer: Answer) -> Case:
    """The policy forbids it for everybody: only another action can help."""
    case = case.noted(f"{case.move}: blocked, {', '.join(answer.rules)}")
    if case.move not in ESSENTIAL:
        return case.drop()
    left = _left(case)
    if case.move == "refund" and CENT <= left < Decimal(_asked(case)):
        return case.learn(amount=str(left))
    return _no_more(case)


def _expired(case: Case, answer: Answer) -> Case:
    """Nobody had the time. Ask again: a try that nobody answered does not count, so
    what the README names waits whenever somebody opens the queue."""
    tries = {**case.tries, case.move: case.tried(case.move) - 1}
    return replace(case.noted(f"{case.move}: expired"), tries=tries)


def _failed(case: Case, answer: Answer) -> Case:
    """Known to have had no effect. Look again where the store's state was the cause."""
    case = case.noted(f"{case.move}: failed, {answer.code}")
    if answer.code == "beyond_total":
        return _look_again(case)
    return _without(case)


def _refused(case: Case, answer: Answer) -> Case:
    """Approved, but the world had changed before it ran: look again, ask again."""
    case = case.noted(f"{case.move}: refused before it ran, {answer.code}")
    return _look_again(case)


def _unknown(case: Case, answer: Answer) -> Case:
    """It may have happened. Never again without a person."""
    note = f"{case.move}: nobody knows whether it happened"
    return case.noted(note).go("note_unknown", result=GAVE_UP)


def _no_way(case: Case, answer: Answer) -> Case:
    """Withdrawn or replaced by somebody else: the case is no longer ours."""
    return case.noted(f"{case.move}: {answer.status}").go(result=GAVE_UP)


def _without(case: Case) -> Case:
    return _no_more(case) if case.move in ESSENTIAL else case.drop()


def _once_more(case: Case, *moves: str) -> Case:
    """The move again, after others, unless it was tried often enough."""
    if case.tried(case.move) >= MOST_TRIES:
        return _without(case)
    return case.go(*moves, *case.agenda[1:])


def _look_again(case: Case) -> Case:
    """A fresh look at the order first; a refund then takes what is left at most."""
    if case.move == "look_up":
        return _once_more(case, "look_up")
    return _once_more(case.learn(fresh=True), "look_up", case.move)


def _asked(case: Case) -> str:
    order = case.did("look_up") or {}
    return str(case.known.get("amount") or order.get("total") or "0")


def _left(case: Case) -> Decimal:
    """What the order has left to refund, by the last look at it."""
    order = case.did("look_up") or {}
    total, refunded = (Decimal(order.get(name, "0")) for name in ("total", "refunded"))
    return total - refunded


def _half(amount: str) -> str:
    return str((Decimal(amount) / 2).quantize(CENT, ROUND_DOWN))


REASONS: dict[str, Callable[[Case], Case]] = {
    "skip": _carry_on,
    "not_needed": _carry_on,
    "duplicate": _carry_on,
    "wrong_amount": _smaller,
    "wrong_target": _question,
    "unclear": _explain,
    "unsafe": _no_more,
    "policy": _no_more,
    "other": _another_way,
}
OUTCOMES: dict[str, Callable[[Case, Answer], Case]] = {
    "executed": _executed,
    "rejected": _rejected,
    "blocked": _blocked,
    "expired": _expired,
    "failed": _failed,
    "refused": _refused,
    "unknown": _unknown,
    "withdrawn": _no_way,
    "superseded": _no_way,
}
