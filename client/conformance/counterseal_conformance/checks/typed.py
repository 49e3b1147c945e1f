"""Strict typing: arguments, edits and answers are checked, and a mistake can be
corrected."""

from __future__ import annotations

from ..catalogue import expect
from ..scripting import NOTE, ORDER, build_turn
from ..subject import Subject
from .durable import expect_one_effect

EDITED = {"part": "gear", "count": 5, "due": "2026-12-24"}
TYPES = {"part": "str", "count": "int", "due": "date"}


def check_edit_typed(subject: Subject) -> None:
    """A reviewer changes a number and a date."""
    subject.start_waiting(ORDER)
    expect(subject.decide("modify", args=EDITED), "the edit was refused")
    subject.resume()
    expect_one_effect(subject)
    effect = subject.effects[0]
    expect(effect.args["count"] == "5", f"it ran with {effect.args}")
    expect(effect.types == TYPES, f"the types were {effect.types}")


def check_edit_same_tool(subject: Subject) -> None:
    """An answer in the framework's own form names another tool."""
    subject.start_waiting(NOTE)
    subject.run("answer", raw="redirection")
    ran = [effect.tool for effect in subject.effects]
    expect("erase_note" not in ran, "the other tool ran")


def check_bad_edit(subject: Subject) -> None:
    """The wrong edit is followed by the right one."""
    subject.start_waiting(ORDER)
    if subject.decide("modify", args={**EDITED, "count": "many"}):
        subject.resume()
    expect(subject.effects == [], f"it ran with {subject.effects}")
    expect(subject.count_waiting() == 1, "the call can no longer be decided")
    subject.decide("modify", args=EDITED)
    subject.resume()
    expect_one_effect(subject)


def check_malformed_answer(subject: Subject) -> None:
    """A text in place of a decision."""
    subject.start_waiting(NOTE)
    subject.run("answer", raw="malformed")
    expect(subject.effects == [], "it ran on a malformed answer")
    expect(subject.count_waiting() == 1, "the call can no longer be decided")
    subject.decide("approve")
    subject.resume()
    expect_one_effect(subject)


def check_bad_call(subject: Subject) -> None:
    """The model writes a word where a number belongs."""
    args = {"part": "gear", "count": "many", "due": "2026-12-01"}
    report = subject.start([build_turn(("call_1", "order_parts", args))])
    if subject.gated:
        expect(subject.list_requests() == [], "people were asked")
        report = subject.resume() if report.pending else report
    else:
        expect(report.pending == [], "people were asked")
    words = " ".join(report.replies)
    expect("count" in words, f"the model was not told what is wrong: {report}")
    expect(subject.effects == [], "it ran")


CHECKS = {
    "typed.edit_typed": check_edit_typed,
    "typed.edit_same_tool": check_edit_same_tool,
    "typed.bad_edit": check_bad_edit,
    "typed.malformed_answer": check_malformed_answer,
    "typed.bad_call": check_bad_call,
}
