"""The kit at a gate that others have set up: it waits for the undo window, and says in
a sentence what that gate lacks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from agents import keys
from counterseal_conformance.catalogue import CHECKS
from counterseal_conformance.runner import run_check
from counterseal_conformance.subject import Subject, Target, list_kit_tools
from reviews.people import tokens
from tests import conformance, factories
from tests.client.test_tools import call_later
from tests.factories import decide
from tests.stack import Stack, free_port

PAGES = ("channels.page", *(name for name in CHECKS if name.startswith("admin.")))


def build_target(
    live: Stack, *, recall: int = 0, tools: Any = conformance.TOOLS
) -> Any:
    """The tests' gate with the kit's policy, and the agent."""
    people = factories.cast()
    policy = yaml.safe_load(conformance.POLICY.read_text())
    policy["recall"]["high"] = recall
    factories.policy(people, policy)
    agent = factories.agent(people["owen"], conformance.AGENT, tools=list(tools))
    token = tokens.create_token(person=people["rita"], name="kit")
    key = keys.issue_key(agent=agent, by=people["owen"])
    target = Target(live.base_url, key, logins={"reviewer": {"token": token}})
    return target, people, agent


def build_subject(target: Target, folder: Path) -> Subject:
    return Subject(target, "langgraph", gated=True, folder=folder)


def propose_note(subject: Subject, agent: Any) -> Any:
    args = {"to": "ann", "text": "hello"}
    return factories.propose(
        agent, tool="send_note", args=args, thread=subject.thread
    ).request


@pytest.mark.servers
def test_a_run_goes_on_when_the_undo_window_has_closed(
    live: Stack, tmp_path: Path
) -> None:
    target, people, agent = build_target(live, recall=600)
    subject = build_subject(target, tmp_path)
    request = propose_note(subject, agent)
    assert len(subject.list_requests()) == 1
    decide(request, people["rita"])
    pool, answer = call_later(subject.wait_for_undo_window)
    with pool:
        rows = subject.reviewer.list_requests(
            target.agent, subject.thread, "recallable"
        )
        assert [row["id"] for row in rows] == [str(request.pk)]
        assert not answer.done()
        factories.window_over(request)
        answer.result(30)
    request.refresh_from_db()
    assert request.status == "authorized"
    subject.reviewer.close()


@pytest.mark.servers
def test_what_the_gate_lacks_is_said_in_a_sentence_each(live: Stack) -> None:
    target, _, _ = build_target(live, tools=("send_note",))
    assert target.list_lacks() == [
        "The agent may not use erase_note, order_parts: add the tools that --policy "
        "prints to the gate's policy, and allow them to the agent."
    ]
    stranger = Target(live.base_url, "cs_none")
    assert "does not take the agent's key" in stranger.list_lacks()[0]
    forger = Target(target.url, target.key, logins={"reviewer": {"token": "csp_x"}})
    assert forger.list_lacks()[1:] == ["The gate does not take the reviewer's token."]


def test_no_gate_is_said_at_once() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    words = [sys.executable, "-P", "-m", "counterseal_conformance", "langgraph"]
    words += ["--gate", url, "--key", "cs_x", "--token", "x"]
    done = subprocess.run(
        words,
        env={"PYTHONPATH": conformance.PYTHONPATH},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert f"No gate answers at {url}: " in done.stderr
    assert "No check was run." in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("check", PAGES)
def test_without_a_password_the_checks_of_pages_are_not_run(
    check: str, tmp_path: Path
) -> None:
    target = Target("http://127.0.0.1:9", "cs_x", logins={"reviewer": {"token": "x"}})
    result = run_check(check, build_subject(target, tmp_path))
    assert result.outcome == "not run"
    assert result.detail.startswith("no password of the role ")


def test_the_kit_knows_the_tools_of_its_policy() -> None:
    assert sorted(list_kit_tools()) == sorted(conformance.TOOLS)


def test_a_gate_that_does_not_start_says_what_was_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "up.log"
    log.write_text("Starting PostgreSQL\nNo space left\n")
    url = f"http://127.0.0.1:{free_port()}"
    up = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
    with pytest.raises(SystemExit) as caught:
        conformance.wait_for_gate(url, up, log)
    said = str(caught.value)
    assert f"{url}/readyz never answered with 200" in said
    assert f"it ended (3). Its output is in {log}" in said
    assert said.endswith("No space left")
    assert (
        f"Waiting until {url}/readyz answers. Output: {log}" in capsys.readouterr().out
    )
