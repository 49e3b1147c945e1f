"""The words of the page of activity."""

from __future__ import annotations

import pytest

from reviews.executions import run
from reviews.models import Execution
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import propose
from tests.markup import read_text

ROWS = [
    ("mark-all", "Mark all 1 as read"),
    ("mark", "Mark as read"),
    ("report", "Report near miss"),
]


@pytest.mark.parametrize(("testid", "text"), ROWS)
def test_the_page_says(gate: Gate, as_: SignIn, testid: str, text: str) -> None:
    propose(gate.agent, "tag")
    page = as_("rita").get("/announced/")
    assert (
        read_text(page, testid).removesuffix(f" , {Execution.objects.get().pk}") == text
    )


def test_a_near_miss_is_confirmed(gate: Gate, as_: SignIn) -> None:
    propose(gate.agent, "tag")
    execution = Execution.objects.get()
    run.run_execution(execution.pk)
    sent = {"near_miss": execution.pk}
    done = as_("rita").post("/announced/seen/", sent, follow=True)
    said = "Near miss reported. It counts against this class of action."
    assert read_text(done, "message") == said
    assert read_text(done, "near-miss") == "Near miss"
