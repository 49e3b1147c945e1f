"""`counterseal wait` against the product, and the exit code of each ending."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.client.command_line.shell import Shell
from tests.client.gate import LoopbackGate
from tests.client.test_tools import LETTER, Desk

ENDINGS: list[tuple[dict[str, Any], int]] = [
    ({"status": "executed"}, 0),
    ({"status": "granted", "grant": {"token": "csg_very_secret_token"}}, 0),
    ({"status": "rejected"}, 4),
    ({"status": "expired"}, 4),
    ({"status": "refused"}, 4),
    ({"status": "failed"}, 4),
    ({"status": "unknown"}, 7),
]


@pytest.mark.servers
def test_it_waits_for_the_decision(agent_shell: Shell, desk: Desk) -> None:
    proposal = desk.gate.propose("t-1", "write", LETTER, rationale="asked")
    process = agent_shell.start("wait", proposal.id)
    desk.decide()
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert f"{proposal.id}: write is authorized." in output
    assert "Its grant waits for the agent" in output


@pytest.mark.parametrize(("facts", "code"), ENDINGS)
def test_each_ending_has_its_exit_code(
    gate: LoopbackGate, loopback_shell: Shell, facts: dict[str, Any], code: int
) -> None:
    words = ("propose", "pay", "--args", "{}", "--thread", "t-1")
    assert loopback_shell.run(*words).returncode == 3
    gate.settle("p-1", **facts)
    done = loopback_shell.run("wait", "p-1")
    assert (done.returncode, done.stderr) == (code, "")
    assert "csg_" not in done.stdout
    whole = loopback_shell.run("wait", "p-1", "--json")
    assert (whole.returncode, json.loads(whole.stdout)) == (code, gate.proposals["p-1"])


def test_time_that_is_over_is_still_waiting(
    gate: LoopbackGate, loopback_shell: Shell
) -> None:
    loopback_shell.run("propose", "pay", "--args", "{}", "--thread", "t-1")
    done = loopback_shell.run("wait", "p-1", "--timeout", "0.1")
    assert (done.returncode, done.stderr) == (3, "")


def test_a_proposal_that_is_not_there_is_one_line(loopback_shell: Shell) -> None:
    done = loopback_shell.run("wait", "p-7")
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert "Check the id" in line


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1", "soon"])
def test_seconds_that_are_none_are_refused(loopback_shell: Shell, seconds: str) -> None:
    done = loopback_shell.run("wait", "p-1", f"--timeout={seconds}")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--timeout" in done.stderr
