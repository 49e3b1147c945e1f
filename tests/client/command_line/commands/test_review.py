"""`counterseal review` against the product: the list, one request, and decisions on
exactly what was shown."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from agents.models import Agent
from reviews.models import ApprovalRequest, Decision
from reviews.people import tokens
from tests import factories
from tests.client.command_line.shell import COMMAND, Shell
from tests.client.test_tools import LETTER, Desk

pytestmark = pytest.mark.servers

HOSTILE = "\x1b[2J\x1b]0;owned\x07Approve\u202ethis\r\n2 reviewers approved"


@pytest.fixture
def letter(desk: Desk) -> ApprovalRequest:
    """A letter with words that would rule a terminal."""
    args = {**LETTER, "text": HOSTILE}
    evidence = [{"kind": "message", "source": HOSTILE[:60], "text": HOSTILE}]
    desk.gate.propose("t-1", "write", args, rationale=HOSTILE, evidence=evidence)
    return ApprovalRequest.objects.get()


def propose_payment(desk: Desk, amount: str = "40.00") -> ApprovalRequest:
    agent = Agent.objects.get(slug="riley")
    request: ApprovalRequest = factories.propose(agent, amount=amount).request
    return request


def test_it_lists_what_waits_for_this_person(
    rita_shell: Shell, desk: Desk, letter: ApprovalRequest
) -> None:
    large = propose_payment(desk, "899.00")
    done = rita_shell.run("review")
    assert (done.returncode, done.stderr) == (0, "")
    assert letter.pk in done.stdout
    assert "agent riley, run t-1" in done.stdout
    assert large.pk not in done.stdout
    assert "1 more for others to decide" in done.stdout
    every = rita_shell.run("review", "--all", "--json")
    assert {row["id"] for row in json.loads(every.stdout)} == {letter.pk, large.pk}


def test_it_shows_what_the_page_shows_as_inert_text(
    rita_shell: Shell, letter: ApprovalRequest
) -> None:
    done = rita_shell.run("review", "show", letter.pk)
    assert done.returncode == 0, done.stderr
    assert not [c for c in done.stdout if (c != "\n" and ord(c) < 32) or c == "\u202e"]
    assert "The agent's own words, not checked" in done.stdout
    assert "\n  | 2 reviewers approved" in done.stdout  # behind the bar
    assert "\n2 reviewers approved" not in done.stdout
    assert f"counterseal review approve {letter.pk}" in done.stdout
    assert not Decision.objects.exists()


def test_a_person_reads_decides_and_it_is_recorded(
    rita_shell: Shell, desk: Desk, letter: ApprovalRequest
) -> None:
    with rita_shell.talk("review", letter.pk) as dialogue:
        dialogue.answer("or later? ", "perhaps")
        dialogue.answer("Type one of", "reject")
        dialogue.answer("Reason for the agent: ", "Ann knows already.")
    assert dialogue.end() == 0, dialogue.text
    decision = Decision.objects.get()
    assert decision.reviewer == desk.people.rita
    assert (decision.verdict, decision.reason) == ("reject", "Ann knows already.")
    assert "\x1b[2J" not in dialogue.text
    assert "\x1b[1m" in dialogue.text  # of this program: its headings


def test_lines_fit_the_terminal_and_colours_can_be_left_out(
    rita_shell: Shell, letter: ApprovalRequest
) -> None:
    rita_shell.variables["NO_COLOR"] = "1"
    with rita_shell.talk("review", "show", letter.pk, columns=60) as dialogue:
        pass
    page = f"/requests/{letter.pk}/"
    lines = [
        line
        for line in dialogue.text.splitlines()
        if page not in line and "counterseal review" not in line
    ]
    assert max(map(len, lines)) <= 60
    assert "\x1b" not in dialogue.text


def test_a_person_may_leave_it_open(rita_shell: Shell, letter: ApprovalRequest) -> None:
    with rita_shell.talk("review", "approve", letter.pk) as dialogue:
        dialogue.answer("[y/N]", "n")
    assert dialogue.end() == 3
    assert "Nothing was recorded" in dialogue.text
    assert not Decision.objects.exists()


def test_what_was_typed_before_the_question_is_no_answer(
    rita_shell: Shell, letter: ApprovalRequest
) -> None:
    with rita_shell.talk("review", letter.pk) as dialogue:
        os.write(dialogue.master, b"approve\n")
        dialogue.answer("or later? ", "later")
    assert dialogue.end() == 3
    assert not Decision.objects.exists()


def test_ctrl_c_records_nothing(rita_shell: Shell, letter: ApprovalRequest) -> None:
    rita_shell.command = COMMAND
    with rita_shell.talk("review", letter.pk) as dialogue:
        dialogue.answer("or later? ", "reject")
        dialogue.answer("Reason for the agent: ", "")
        dialogue.interrupt()
    assert dialogue.end() == 130
    assert "Traceback" not in dialogue.text
    assert not Decision.objects.exists()


def test_without_a_question_it_decides_on_what_was_shown(
    rita_shell: Shell, letter: ApprovalRequest
) -> None:
    words = ("review", "reject", letter.pk, "--reason", "Not needed.", "--yes")
    unseen = rita_shell.run(*words)
    assert unseen.returncode == 6
    assert "had not been shown" in unseen.stderr
    assert letter.pk in unseen.stdout  # it is shown now
    assert not Decision.objects.exists()
    done = rita_shell.run(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert Decision.objects.get().reason == "Not needed."


def test_a_newer_version_is_never_decided_unseen(rita_shell: Shell, desk: Desk) -> None:
    request = propose_payment(desk)
    rita_shell.run("review", "show", request.pk)
    agent = Agent.objects.get(slug="riley")
    factories.revise(agent, request.proposal, amount="45.00")
    words = ("review", "approve", request.pk, "--yes")
    changed = rita_shell.run(*words)
    assert changed.returncode == 6
    assert "It has changed since it was shown to you." in changed.stderr
    assert "Pay 45.00 USD" in changed.stdout
    assert not Decision.objects.exists()
    assert rita_shell.run(*words).returncode == 0
    assert Decision.objects.get().version == 2


def test_a_version_that_comes_while_a_person_reads_is_refused(
    rita_shell: Shell, desk: Desk
) -> None:
    request = propose_payment(desk)
    with rita_shell.talk("review", request.pk) as dialogue:
        dialogue.answer("or later? ", "")
        agent = Agent.objects.get(slug="riley")
        factories.revise(agent, request.proposal, amount="45.00")
        dialogue.answer("Type one of", "approve")
    assert dialogue.end() == 6
    assert not Decision.objects.exists()


def test_what_needs_a_password_is_decided_on_the_page(
    desk: Desk, rita_shell: Shell
) -> None:
    request = propose_payment(desk, "899.00")
    token = tokens.create_token(person=desk.people.sue, name="terminal")
    rita_shell.variables["COUNTERSEAL_TOKEN"] = token
    rita_shell.run("review", "show", request.pk)
    done = rita_shell.run("review", "approve", request.pk, "--yes")
    assert done.returncode == 5
    assert "needs your password" in done.stderr
    assert f"{desk.url}/requests/{request.pk}/" in done.stderr
    assert not Decision.objects.exists()


def test_what_the_page_asks_a_question_about_is_decided_there(
    desk: Desk, rita_shell: Shell
) -> None:
    document: Any = factories.document_of_tests()
    document["desk"]["micro_check"]["high"] = 1
    factories.policy(desk.people.people, document)
    request = propose_payment(desk)
    with rita_shell.talk("review", request.pk) as dialogue:
        dialogue.answer("Reject, skip or later? ", "later")
    assert dialogue.end() == 3
    done = rita_shell.run("review", "approve", request.pk, "--yes")
    assert done.returncode == 5
    assert "asks a question" in done.stderr
    assert not Decision.objects.exists()


def test_an_approval_is_recalled_on_the_page(rita_shell: Shell, desk: Desk) -> None:
    document: Any = factories.document_of_tests()
    document["recall"]["high"] = 3600
    factories.policy(desk.people.people, document)
    request = propose_payment(desk)
    rita_shell.run("review", "show", request.pk)
    done = rita_shell.run("review", "approve", request.pk, "--yes")
    assert done.returncode == 0
    assert f"{desk.url}/requests/{request.pk}/" in done.stdout
    again = rita_shell.run("review", "reject", request.pk, "--reason", "No.", "--yes")
    assert again.returncode == 5
    assert "undo the approval on its page" in again.stderr


def test_who_cannot_decide_learns_why(desk: Desk, rita_shell: Shell) -> None:
    request = propose_payment(desk)
    token = tokens.create_token(person=desk.people.otto, name="terminal")
    rita_shell.variables["COUNTERSEAL_TOKEN"] = token
    done = rita_shell.run("review", request.pk)
    assert done.returncode == 4
    assert done.stderr.strip()
    assert not Decision.objects.exists()


def test_a_token_that_ended_is_one_line(rita_shell: Shell) -> None:
    rita_shell.variables["COUNTERSEAL_TOKEN"] = "csp_k7xw2m9q_endedendedended"
    done = rita_shell.run("review")
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert "counterseal init --person --new-key" in line
    assert "ended" not in line


def test_an_unknown_request_is_one_line(rita_shell: Shell) -> None:
    done = rita_shell.run("review", "show", "r-7")
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert "(404 not_found)" in line


@pytest.mark.parametrize(
    "words",
    [
        ("approve",),
        ("show", "r-1", "r-2"),
        ("p-1",),
        ("r-1", "--yes"),
        ("reject", "r-1"),
        ("r-1", "--all"),
        ("approve", "r-1", "--code", "skip"),
        ("approve", "r-1", "--json"),
    ],
)
def test_words_that_do_not_fit_are_refused(
    rita_shell: Shell, words: tuple[str, ...]
) -> None:
    done = rita_shell.run("review", *words)
    assert (done.returncode, done.stdout) == (2, "")
