"""The sentences of the request page, its panels and the queue, each asserted once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from desk.components.choice import describe_shortage
from policies.staffing import Shortage
from reviews.effects.wording import format_short_hash
from reviews.holds import take
from reviews.models import ApprovalRequest
from tests import factories
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.desk.request.test_views import url
from tests.factories import propose
from tests.markup import read_page, read_text
from tests.reviews import states


def opened(gate: Gate) -> ApprovalRequest:
    request = propose(gate.agent).request
    assert request is not None
    return request


def critical(gate: Gate) -> ApprovalRequest:
    request = propose(gate.agent, amount="899.00").request
    assert request is not None
    return request


def by_agent(gate: Gate) -> ApprovalRequest:
    """A request for an action that the agent performs itself."""
    document = factories.document_of_tests()
    document["tools"]["pay"]["executor"] = {"kind": "agent"}
    factories.policy(gate.people, document)
    return opened(gate)


def held(gate: Gate) -> ApprovalRequest:
    request = opened(gate)
    take.take_hold(request_id=request.pk, person=gate.rita)
    return request


def offered(gate: Gate) -> ApprovalRequest:
    request = held(gate)
    take.offer_hold(request_id=request.pk, person=gate.rita, to=gate.tom)
    return request


def failed(gate: Gate) -> ApprovalRequest:
    return states.failed(gate).proposal.request


# Who looks, at what, in which state; the element, and all that it says.
PAGES: list[tuple[str, str, Callable[[Gate], ApprovalRequest], str, str]] = [
    ("rita", "", opened, "state", "Pending"),
    ("rita", "", opened, "tier", "High Requires 1 approval"),
    ("rita", "", opened, "take", "Claim C"),
    ("rita", "", held, "release", "Release C"),
    ("tom", "", held, "notify", "Notify me"),
    ("sue", "", held, "break", "End claim…"),
    (
        "tom",
        "",
        offered,
        "outcome-line",
        "Accept it to decide it. If you decline it, Rita Example keeps it.",
    ),
    ("tom", "", offered, "take-over", "Accept C"),
    ("sue", "", critical, "tier", "High Requires 2 approvals"),
    ("rita", "", states.recallable, "recall", "Undo approval Sending… Z"),
    (
        "rita",
        "",
        states.recallable,
        "outcome-line",
        "The undo window is open. Nothing has run yet.",
    ),
    ("rita", "", failed, "retry", "Retry Sending…"),
    ("sue", "decide/?arm=approve", critical, "commit", "Approve (1 of 2) Sending… C"),
    ("rita", "decide/?arm=approve", opened, "commit", "Approve and run Sending… C"),
    ("rita", "decide/?arm=approve", by_agent, "commit", "Approve Sending… C"),
]


@pytest.mark.parametrize(("name", "path", "build", "testid", "text"), PAGES)
def test_an_element_says(
    gate: Gate,
    as_: SignIn,
    name: str,
    path: str,
    build: Callable[[Gate], ApprovalRequest],
    testid: str,
    text: str,
) -> None:
    page = as_(name).get(url(build(gate)) + path)
    said = read_text(page, testid).replace("Ctrl ↵", "C")
    assert said == text


def test_a_panel_says_what_the_verdict_does(gate: Gate, as_: SignIn) -> None:
    request = critical(gate)
    digest = format_short_hash(request.action_hash)
    page = as_("sue").get(url(request) + "decide/?arm=approve")
    panel = read_text(page, "panel")
    for said in (
        "You are approving version 1 exactly as shown. "
        f"The audit log names it {digest}.",
        "One more supervisor must approve, without seeing your decision.",
        "Note optional, visible to auditors",
        "Confirms your identity. Used once, for this decision only.",
    ):
        assert said in panel
    panel = read_text(as_("sue").get(url(request) + "decide/?arm=reject"), "panel")
    assert "Note visible to the agent; required for Other" in panel
    assert "The agent receives the reason you choose and your note" in panel


def test_the_approvals_say_who_must_decide(gate: Gate, as_: SignIn) -> None:
    page = as_("sue").get(url(critical(gate)))
    text = read_text(page)
    for said in (
        "0 of 2 (2 supervisors). Names and votes are hidden until the",
        "If nobody decides It expires. It is never approved automatically.",
        "Why approval is needed Policy v1",
        "Proposed by riley",
    ):
        assert said in text


def test_the_queue_names_its_tabs_and_columns(gate: Gate, as_: SignIn) -> None:
    opened(gate)
    page = as_("rita").get("/queue/")
    text = read_text(page, "queue-table")
    for said in ("Mine 0", "Open 1", "Waiting on others 0", "Resolved 0"):
        assert said in text
    assert "Risk Action Amount Expires Status High 1 reviewer" in text
    assert "Preview" in read_page(page)


TOO_FEW = "You cannot escalate this: too few other supervisors can decide."


@pytest.mark.parametrize(
    ("there", "needed", "text"),
    [
        (0, 1, "Nobody above you can decide this."),
        (1, 3, TOO_FEW),
        (2, 3, TOO_FEW),
    ],
)
def test_a_shortage_says_that_nobody_or_too_few_are_left(
    there: int, needed: int, text: str
) -> None:
    assert describe_shortage(Shortage(there, needed, "supervisors")) == text
