"""The words of the incidents page."""

from __future__ import annotations

import pytest

from reviews.stops import incidents
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import propose
from tests.markup import read_text

URL = "/incidents/"
DECLARED = {"queue": "every", "reason": "disk on fire"}
ROWS = [
    ({}, "no-incident", "No incident is open. All deadlines are running."),
    (DECLARED, "message", "Deadlines are paused. People can still decide."),
    (
        DECLARED,
        "paused-requests",
        "1 open request, each keeping the time that was left",
    ),
    (
        {"queue": "every", "reason": ""},
        "problem",
        "No deadline was paused. Describe what happened. It is shown and logged.",
    ),
    (
        {"queue": "", "reason": "disk on fire"},
        "problem",
        "No deadline was paused. Choose a queue.",
    ),
]


@pytest.mark.parametrize(("sent", "testid", "text"), ROWS)
def test_the_page_says(
    gate: Gate, as_: SignIn, sent: dict[str, str], testid: str, text: str
) -> None:
    propose(gate.agent)
    client = as_("sue")
    page = client.post(URL, sent, follow=True) if sent else client.get(URL)
    assert read_text(page, testid) == text


def test_the_end_is_confirmed(gate: Gate, as_: SignIn) -> None:
    row = incidents.declare_incident(person=gate.sue, reason="disk on fire")
    done = as_("sue").post(f"{URL}{row.pk}/end/", follow=True)
    said = "Deadlines run again, each with the time that was left."
    assert read_text(done, "message") == said
