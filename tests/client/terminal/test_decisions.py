"""What a person at a terminal may decide, by the facts of the request; how the gate
takes it is tested with the commands and the handlers."""

from __future__ import annotations

from typing import Any

import pytest

from counterseal_client import ApiError
from counterseal_client.people import RequestDetail
from counterseal_client.terminal.decisions import (
    REJECTION_CODES,
    PersonVerdict,
    VerdictOutcome,
    ask_verdict,
    check_verdict,
    find_outcome,
    list_verdicts,
)
from reviews.choices import VERDICT_SPECS, Verdict


def build_request(**facts: Any) -> RequestDetail:
    return RequestDetail.model_validate(
        {
            "id": "r-1",
            "title": "Pay",
            "version": 1,
            "action_hash": "sha256:00",
            "verdicts": ["approve", "reject", "modify", "escalate"],
            **facts,
        }
    )


@pytest.mark.parametrize(
    ("facts", "outcome", "verdicts"),
    [
        ({}, None, ("approve", "reject")),
        ({"step_up": True}, VerdictOutcome.PAGE_NEEDED, ("reject",)),
        ({"attention_check": True}, VerdictOutcome.PAGE_NEEDED, ("reject",)),
        ({"verdicts": ["reject"]}, VerdictOutcome.CLOSED, ("reject",)),
        ({"verdicts": []}, VerdictOutcome.CLOSED, ()),
        ({"status": "expired"}, VerdictOutcome.CLOSED, ()),
    ],
)
def test_only_what_the_page_need_not_ask_is_decided_here(
    facts: dict[str, Any], outcome: VerdictOutcome | None, verdicts: tuple[str, ...]
) -> None:
    request = build_request(**facts)
    result = check_verdict(request, "approve")
    assert (result and result.outcome) == outcome
    assert list_verdicts(request) == verdicts


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("reauth", VerdictOutcome.PAGE_NEEDED),
        ("stale", VerdictOutcome.CHANGED),
        ("precondition", VerdictOutcome.CHANGED),
        ("held", VerdictOutcome.CLOSED),
        ("decided", VerdictOutcome.CLOSED),
        ("throttle", None),
        ("verifier", None),
    ],
)
def test_a_refusal_says_what_became_of_the_verdict(
    code: str, outcome: VerdictOutcome | None
) -> None:
    assert find_outcome(ApiError(409, code, "No.")) is outcome


def test_the_reasons_of_a_rejection_are_those_of_the_gate() -> None:
    assert tuple(VERDICT_SPECS[Verdict.REJECT].reasons) == REJECTION_CODES


@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        (["a"], PersonVerdict("approve", "verified")),
        (["SKIP"], PersonVerdict("reject", "skip")),
        (["", "no", "r", " ", "Why?"], PersonVerdict("reject", "other", "Why?")),
        (["later"], None),
        ([], None),
        (["reject"], None),
    ],
)
def test_a_person_is_asked_until_the_answer_is_clear(
    answers: list[str], verdict: PersonVerdict | None
) -> None:
    given = iter(answers)

    def answer(_: str) -> str:
        try:
            return next(given)
        except StopIteration:
            raise EOFError from None

    assert ask_verdict(build_request(), answer, lambda _: None) == verdict
