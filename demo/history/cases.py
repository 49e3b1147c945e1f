"""The cases of the history: what is proposed when, and what people make of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any

import yaml

from reviews.choices import Verdict

CASES = Path(__file__).with_name("cases.yaml")
SIGNS = {"-": Verdict.REJECT, "^": Verdict.ESCALATE, "*": Verdict.MODIFY}
WORDS = {
    "price_match": "The customer asks for the difference to today's price.",
    "damaged": "The customer says that the item of order {order} arrived damaged.",
    "returned": "The customer sent the item of order {order} back.",
    "charged_twice": "The customer says that order {order} was charged twice.",
}
REASONS = {
    "duplicate": "This was settled before, and the ledger shows one payment.",
    "unclear": "Nothing here says why the customer should get this.",
    "not_needed": "The customer did not ask for money.",
    "unsafe": "Nobody at the store knows this recipient or asked for it.",
    "wrong_target": "These are not the customer's addresses.",
    "wrong_amount": "Half of the order was kept, so half of it stays paid.",
    "policy": "A second goodwill refund within a day is a supervisor's to offer.",
}


@dataclass(frozen=True, slots=True)
class PlannedVerdict:
    """What one person decides, such as `-tom duplicate` or `*rita 90.00`."""

    person: str
    verdict: Verdict
    code: str = ""
    amount: str = ""

    @property
    def reason(self) -> str:
        return REASONS.get(self.code, "")

    @classmethod
    def parse(cls, text: str) -> PlannedVerdict:
        verdict = SIGNS.get(text[0], Verdict.APPROVE)
        name, _, rest = text.lstrip("".join(SIGNS)).partition(" ")
        if verdict is Verdict.MODIFY:
            return cls(name, verdict, "wrong_amount", rest)
        return cls(name, verdict, rest or "verified")


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One call that an agent proposes, and who decides it if the policy asks for
    people. `became` is what an agent does with an approval that it redeems."""

    tool: str
    args: Mapping[str, Any]
    rationale: str
    verdicts: tuple[PlannedVerdict, ...] = ()
    became: str = ""
    settled_by: str = ""
    closed_by: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """One run of an agent: its calls one after the other."""

    at: datetime
    agent: str
    thread: str
    calls: tuple[PlannedCall, ...]


def load_cases(now: datetime, customers: Mapping[str, str]) -> list[Case]:
    """The cases that end with `now`, oldest first. `customers` has the mailbox of each
    order's customer."""
    rows = yaml.safe_load(CASES.read_text("utf-8"))
    cases = [
        Case(
            _find_moment(row, now),
            "riley",
            f"case_{row['order']}_{number}",
            tuple(_list_rileys_calls(row, customers[row["order"]])),
        )
        for number, row in enumerate(rows["riley"])
    ]
    cases += [
        Case(
            _find_moment(row, now),
            "harper",
            f"back_office_{number}",
            (_build_harpers_call(row),),
        )
        for number, row in enumerate([*rows["harper"], *rows["today"]])
    ]
    return sorted(cases, key=lambda case: case.at)


def _find_moment(row: Mapping[str, Any], now: datetime) -> datetime:
    if "hours" in row:
        return now - timedelta(hours=row["hours"])
    days, clock_time = row["at"].split()
    day = now.date() - timedelta(days=int(days))
    return datetime.combine(day, time.fromisoformat(clock_time), now.tzinfo)


def _parse_verdicts(texts: list[str]) -> tuple[PlannedVerdict, ...]:
    return tuple(PlannedVerdict.parse(text) for text in texts)


def _list_rileys_calls(row: Mapping[str, Any], mailbox: str) -> Iterator[PlannedCall]:
    order, people = row["order"], _parse_verdicts(row.get("people", []))
    yield PlannedCall(
        "look_up_order",
        {"order_id": order},
        f"The message is about order {order}.",
    )
    if "refund" in row:
        words = WORDS[row["why"]].format(order=order)
        yield PlannedCall(
            "process_refund",
            _build_refund(order, row["refund"], row["why"]),
            words,
            people,
        )
        subject, body = "Your refund", f"we looked into your wish about order {order}."
    elif "label" in row:
        args = {"order_id": order, "carrier": row["label"]}
        words = "The customer wants to send the item back."
        yield PlannedCall("create_return_label", args, words, people)
        subject, body = "Your return", f"the label for order {order} is on its way."
    else:
        args = {"order_id": order, "body": f"Hello,\n\norder {order} has arrived."}
        yield PlannedCall(
            "draft_reply", args, "A colleague reads it before it goes out."
        )
    if row.get("mail"):
        mail = _build_mail([mailbox], subject, body)
        words = "The customer waits for an answer."
        yield PlannedCall("send_email", mail, words, _parse_verdicts(row["mail"]))


def _build_harpers_call(row: Mapping[str, Any]) -> PlannedCall:
    verdicts = _parse_verdicts(row["people"])
    if "credit" in row:
        args = {"customer_id": row["customer"], "amount": row["credit"]}
        return PlannedCall(
            "issue_store_credit",
            args | {"currency": "USD"},
            "Goodwill for a customer who wrote twice.",
            verdicts,
            row["became"],
            row.get("settled_by", ""),
            row.get("closed_by", ""),
        )
    if "refund" in row:
        args = _build_refund(row["order"], row["refund"], "goodwill")
        return PlannedCall("process_refund", args, "Goodwill.", verdicts)
    if "delete" in row:
        args = {"customer_id": row["delete"]}
        words = "The account was not used for a year."
        return PlannedCall("delete_customer", args, words, verdicts)
    body = "our offers of this month are attached."
    mail = _build_mail(row["mail_to"], "Our offers", body)
    return PlannedCall("send_email", mail, "More people should know them.", verdicts)


def _build_refund(order: str, amount: str, why: str) -> dict[str, Any]:
    return {"order_id": order, "amount": amount, "currency": "USD", "reason": why}


def _build_mail(to: list[str], subject: str, body: str) -> dict[str, Any]:
    signature = "Northgate Electronics"
    return {"to": to, "subject": subject, "body": f"Hello,\n\n{body}\n\n{signature}"}
