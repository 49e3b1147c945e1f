"""The words of the pages of unknown results."""

from __future__ import annotations

import pytest

from reviews.executions import settle
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.markup import read_text
from tests.reviews import states
from tests.reviews.executions.test_reconcile import doubtful

ONE = [
    (
        "outcome",
        "This action may or may not have happened. It is not retried automatically.",
    ),
    ("execution-class", "Opaque: attempted once; the service offers no look-up"),
    ("record", "Record result"),
    (
        "follows-yes",
        "The agent is told that it was executed, without the tool's answer. Counters"
        " and limits continue to count it. Nothing runs.",
    ),
]
SETTLED = [
    (True, "It happened, as recorded by a person."),
    (False, "It did not happen, as recorded by a person."),
]


@pytest.mark.parametrize(("testid", "text"), ONE)
def test_the_page_of_one_says(gate: Gate, as_: SignIn, testid: str, text: str) -> None:
    execution = states.unknown(gate)
    assert read_text(as_("sue").get(f"/unknown/{execution.pk}/"), testid) == text


def test_the_list_says_what_a_person_can_do(gate: Gate, as_: SignIn) -> None:
    states.unknown(gate)
    page = as_("sue").get("/unknown/")
    assert read_text(page, "looked") == "Cannot be looked up"
    assert read_text(page, "mine") == "You can record the result"


@pytest.mark.parametrize(("happened", "text"), SETTLED)
def test_a_settled_result_says_who_recorded_it(
    gate: Gate, as_: SignIn, happened: bool, text: str
) -> None:
    execution = states.unknown(gate)
    settle.settle_unknown(
        execution_id=execution.pk, person=gate.sam, happened=happened, reason="seen"
    )
    assert read_text(as_("sue").get("/unknown/"), "outcome") == text
    named = text.replace("a person.", "Sam Example .")
    page = as_("sue").get(f"/unknown/{execution.pk}/")
    assert read_text(page, "outcome") == named


def test_a_look_up_is_confirmed(gate: Gate, as_: SignIn) -> None:
    execution = doubtful(gate, ran=True)
    done = as_("sue").post(f"/unknown/{execution.pk}/look-up/", follow=True)
    assert read_text(done, "message") == "Resolved by the look-up."
    assert read_text(done, "outcome") == "It happened, as reported by its service."


def test_a_record_is_confirmed(gate: Gate, as_: SignIn) -> None:
    execution = states.unknown(gate)
    sent = {"happened": "no", "reason": "not in their ledger"}
    done = as_("sue").post(f"/unknown/{execution.pk}/", sent, follow=True)
    assert read_text(done, "message") == "Recorded. The agent is told the result."
