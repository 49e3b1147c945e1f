"""Handlers that answer "may this call run?": on the pages, at a terminal, in tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from counterseal_client import ApprovalPending
from counterseal_client.handlers import (
    ApprovalDecision,
    AutomaticApprovalHandler,
    TerminalApprovalHandler,
    ToolApprovalRequest,
    WebApprovalHandler,
)
from reviews.models import ApprovalRequest, Decision, Execution, Proposal
from reviews.people import tokens
from tests import conftest, factories
from tests.client.test_tools import LETTER, Desk
from tests.factories import decide
from tests.stack import Stack

REQUEST = ToolApprovalRequest(
    tool="write",
    args=LETTER,
    thread="t-1",
    call_id="c-1",
    details={"rationale": "asked"},
)
IN_TESTS = {"PYTEST_CURRENT_TEST": "test"}


@pytest.fixture
def desk(live: Stack, empty_world: None) -> Iterator[Desk]:
    desk = Desk(live, conftest.make_gate())
    with desk.gate:
        yield desk


@pytest.mark.servers
@pytest.mark.parametrize(
    ("verdict", "reason", "decision"),
    [
        ("approve", "verified", ApprovalDecision.APPROVED),
        ("reject", "not_needed", ApprovalDecision.DENIED),
        ("reject", "skip", ApprovalDecision.SKIPPED),
    ],
)
def test_the_web_handler_says_what_people_decided(
    desk: Desk, verdict: str, reason: str, decision: ApprovalDecision
) -> None:
    handler = WebApprovalHandler(desk.gate, wait_seconds=0)
    with pytest.raises(ApprovalPending):
        handler.request(REQUEST)
    decide(ApprovalRequest.objects.get(), desk.people.rita, verdict, reason_code=reason)
    again = ToolApprovalRequest.model_validate_json(REQUEST.model_dump_json())
    assert handler.request(again) is decision


@pytest.mark.servers
def test_the_tool_performs_what_a_handler_asked_for(desk: Desk) -> None:
    writer = desk.build_writer(desk.gate)
    with pytest.raises(ApprovalPending):
        WebApprovalHandler(desk.gate, wait_seconds=0).request(REQUEST)
    decide(ApprovalRequest.objects.get(), desk.people.rita)
    writer.call(dict(LETTER), thread="t-1", call_id="c-1", rationale="asked")
    assert Execution.objects.get().status == "succeeded"


@pytest.mark.servers
def test_the_person_at_the_terminal_decides_under_their_name(desk: Desk) -> None:
    shown: list[str] = []
    words = iter(["maybe", "reject", "Too long."])
    handler = TerminalApprovalHandler(
        desk.gate,
        tokens.create_token(person=desk.people.rita, name="terminal"),
        ask=lambda _: next(words),
        show=shown.append,
    )
    hostile = REQUEST.model_copy(update={"args": {**LETTER, "text": "\x1b[2Jhi\u202e"}})
    assert handler.request(hostile) is ApprovalDecision.DENIED
    decision = Decision.objects.get()
    assert (decision.reviewer, decision.reason) == (desk.people.rita, "Too long.")
    assert not [line for line in shown if "\x1b" in line or "\u202e" in line]


@pytest.mark.servers
def test_a_terminal_without_the_right_waits_for_the_pages(desk: Desk) -> None:
    shown: list[str] = []
    handler = TerminalApprovalHandler(
        desk.gate,
        tokens.create_token(person=desk.people.otto, name="terminal"),
        ask=lambda _: pytest.fail("An auditor was asked to decide."),
        show=shown.append,
        wait_seconds=0,
    )
    with pytest.raises(ApprovalPending):
        handler.request(REQUEST)
    assert "You cannot decide it here." in "\n".join(shown)


@pytest.mark.servers
def test_what_the_page_asks_about_is_approved_on_the_page(desk: Desk) -> None:
    document = factories.document_of_tests()
    document["desk"]["micro_check"]["high"] = 1
    factories.policy(desk.people.people, document)
    shown: list[str] = []
    words = iter(["approve", "later"])
    handler = TerminalApprovalHandler(
        desk.gate,
        tokens.create_token(person=desk.people.rita, name="terminal"),
        ask=lambda _: next(words),
        show=shown.append,
        wait_seconds=0,
    )
    with pytest.raises(ApprovalPending):
        handler.request(REQUEST)
    text = "\n".join(shown)
    assert "Approve it on its" in text
    assert "Type one of: reject, skip, later." in text
    assert not Decision.objects.exists()


@pytest.mark.servers
def test_a_version_that_comes_while_the_person_reads_is_refused(desk: Desk) -> None:
    shown: list[str] = []

    def revise_and_approve(_: str) -> str:
        proposal = Proposal.objects.get()
        desk.gate.revise(proposal.pk, {**LETTER, "text": "goodbye"}, rationale="asked")
        return "approve"

    handler = TerminalApprovalHandler(
        desk.gate,
        tokens.create_token(person=desk.people.rita, name="terminal"),
        ask=revise_and_approve,
        show=shown.append,
        wait_seconds=0,
    )
    with pytest.raises(ApprovalPending):
        handler.request(REQUEST)
    assert any("Nothing was recorded." in line for line in shown)
    assert not Decision.objects.exists()


def test_the_automatic_handler_answers_in_tests() -> None:
    assert AutomaticApprovalHandler().request(REQUEST) is ApprovalDecision.APPROVED
    denying = AutomaticApprovalHandler(ApprovalDecision.DENIED)
    assert denying.request(REQUEST) is ApprovalDecision.DENIED


@pytest.mark.parametrize(
    "arguments", [["/usr/lib/python3/unittest/__main__.py"], ["manage.py", "test"]]
)
def test_other_test_runners_are_known(arguments: list[str]) -> None:
    handler = AutomaticApprovalHandler(environment={}, arguments=arguments)
    assert handler.request(REQUEST) is ApprovalDecision.APPROVED


@pytest.mark.parametrize("arguments", [[], ["agent.py"], ["manage.py", "runserver"]])
def test_the_automatic_handler_is_silent_elsewhere(arguments: list[str]) -> None:
    handler = AutomaticApprovalHandler(environment={}, arguments=arguments)
    with pytest.raises(RuntimeError, match="answers only in tests"):
        handler.request(REQUEST)


@pytest.mark.parametrize("name", ["COUNTERSEAL_ENV", "DJANGO_ENV", "ENVIRONMENT"])
def test_the_automatic_handler_never_answers_in_production(name: str) -> None:
    handler = AutomaticApprovalHandler(environment={**IN_TESTS, name: "Production"})
    with pytest.raises(RuntimeError, match=f"{name}=Production"):
        handler.request(REQUEST)
