"""The page of the tools: what the policy declares, and how often each is called."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from policies.choices import Role
from reviews.choices import Scope, StopMode
from reviews.stops import stops
from tests import factories
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.markup import read_page

ROW = re.compile(r"<tr>\s*<th scope=\"row\">.*?</tr>", re.DOTALL)


def read_row(page: str, tool: str) -> str:
    rows: list[str] = ROW.findall(page)
    (row,) = (row for row in rows if f">{tool}</span>" in row)
    return row


def test_it_says_who_decides_and_how_often_a_tool_is_called(
    gate: Gate, as_: SignIn
) -> None:
    for _ in range(2):
        factories.propose(gate.agent, thread=factories.new_thread())
    page = read_page(as_("sue").get("/tools/"))
    pay = read_row(page, "pay")
    words = " ".join(re.sub("<[^>]+>", " ", pay).split())
    assert "Up to 500.00 USD: 1 reviewer" in words
    assert "or at least" not in words
    assert re.search(r'href="/policies/\d+/#tool-pay">1\s+rule asks for more', pay)
    assert '<td data-label="Calls" class="num">2</td>' in pay
    assert "never" in read_row(page, "write")
    assert "/stop/?tool=pay" in pay


def test_a_reviewer_sees_no_calls_of_other_queues(gate: Gate, as_: SignIn) -> None:
    factories.propose(gate.agent)
    page = read_page(as_("rita").get("/tools/"))
    assert "1 reviewer" in read_row(page, "pay")
    assert "Calls" not in page


def test_a_stopped_tool_is_marked(gate: Gate, as_: SignIn) -> None:
    stop = stops.create_stop(
        scope=Scope.TOOL,
        key="pay",
        person=gate.sue,
        reason="Audit.",
        mode=StopMode.PAUSED,
    )
    page = read_page(as_("adam").get("/tools/"))
    row = read_row(page, "pay")
    assert "Paused</a>" in row
    assert f'<a href="/people/{gate.sue.public_id}/">{gate.sue}</a>' in row
    assert f"/stop/{stop.pk}/" in row
    assert "Paused" not in read_row(page, "write")


def test_undeclared_tools_stand_there_for_an_administrator(
    gate: Gate, as_: SignIn
) -> None:
    factories.hold_unknown_tools(gate.people, "mail")
    factories.propose(gate.agent, "issue_credit", args={"to": "c-1"})
    assert "?declare=issue_credit" in read_page(as_("adam").get("/tools/"))
    assert "?declare=" not in read_page(as_("otto").get("/tools/"))


@pytest.mark.django_db
def test_before_a_policy_it_says_so() -> None:
    client = Client()
    adam = factories.person("adam", Role.ADMINISTRATOR)
    client.force_login(adam, "django.contrib.auth.backends.ModelBackend")
    assert "No policy is active yet" in read_page(client.get("/tools/"))


@pytest.mark.parametrize(
    ("path", "label"),
    [("/queue/", "Queue"), ("/queue/?tab=mine", "Mine"), ("/tools/", "Tools")],
)
def test_the_rail_marks_where_one_is(
    gate: Gate, as_: SignIn, path: str, label: str
) -> None:
    page = read_page(as_("sue").get(path))
    marked = re.findall(r'aria-current="page"[^>]*>\s*([A-Z]\w+)', page)
    assert marked[0] == label  # what follows are tabs of the page
