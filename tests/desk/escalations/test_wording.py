"""The words of the pages of escalations."""

from __future__ import annotations

import pytest

from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import decide, propose
from tests.markup import read_text

ROWS = [
    (
        "undecided",
        "Requests that need a supervisor, earliest deadline first. If nobody decides, a"
        " request expires. It is never approved automatically.",
    ),
    ("mine", "Pending No pending escalations."),
    ("others", "Waiting on others No escalations waiting on others."),
    (
        "figures",
        "Last 7 days Based on 0 decisions No person escalated a request. What a rule of"
        " the policy escalates is not counted here.",
    ),
]
SUPERVISION = [
    ("return", {"guidance": "Ask first."}, "Returned. Reviewers see your guidance."),
    (
        "assign",
        {"to": "sam"},
        "Assigned to Sam Example, who is notified by email. Others can decide too.",
    ),
]


@pytest.mark.parametrize(("testid", "text"), ROWS)
def test_the_empty_list_says(gate: Gate, as_: SignIn, testid: str, text: str) -> None:
    assert read_text(as_("sue").get("/escalations/"), testid) == text


@pytest.mark.parametrize(("act", "sent", "text"), SUPERVISION)
def test_an_act_is_confirmed(
    gate: Gate, as_: SignIn, act: str, sent: dict[str, str], text: str
) -> None:
    request = propose(gate.agent).request
    decide(request, gate.rita, "escalate", reason_code="unsafe")
    if "to" in sent:
        sent = {"to": gate.people[sent["to"]].public_id}
    done = as_("sue").post(f"/requests/{request.pk}/{act}/", sent, follow=True)
    assert read_text(done, "message") == text


def test_a_closed_disagreement_is_confirmed(gate: Gate, as_: SignIn) -> None:
    request = propose(gate.agent, amount="899.00").request
    decide(request, gate.sue, reason_code="verified")
    decide(request, gate.sam, "reject", reason_code="unsafe")
    sent = {"text": "Check the account."}
    done = as_("sue").post(f"/requests/{request.pk}/arbitrate/", sent, follow=True)
    assert read_text(done, "message") == "Closed. The request remains rejected."
