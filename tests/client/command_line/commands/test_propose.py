"""`counterseal propose` against the product, and against a gate that fails."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from counterseal_client.command_line.commands.propose import read_arguments
from counterseal_client.command_line.sessions import InvalidUsage
from reviews.models import ApprovalRequest, Proposal
from tests.client.command_line.shell import COMMAND, Shell
from tests.client.gate import Fault, LoopbackGate
from tests.client.test_tools import LETTER, Desk
from tests.stack import wait_until

LETTER_WORDS = ("write", "--args", json.dumps(LETTER), "--thread", "t-1")


@pytest.mark.servers
def test_it_proposes_and_says_who_must_decide(agent_shell: Shell, desk: Desk) -> None:
    done = agent_shell.run("propose", *LETTER_WORDS, "--rationale", "asked")
    proposal = Proposal.objects.get()
    request = ApprovalRequest.objects.get()
    assert (done.returncode, done.stderr) == (3, "")
    assert f"{proposal.pk}: write waits for people." in done.stdout
    assert "Needs 1 reviewer (0 approved)" in done.stdout
    assert f"{desk.url}/requests/{request.pk}/" in done.stdout
    assert f"counterseal wait {proposal.pk}" in done.stdout


@pytest.mark.servers
def test_json_is_the_object_of_the_api(agent_shell: Shell, desk: Desk) -> None:
    words = [*LETTER_WORDS, "--rationale", "asked", "--json", "--key", "k-1"]
    done = agent_shell.run("propose", *words)
    found = json.loads(done.stdout)
    assert (done.returncode, found["status"]) == (3, "pending")
    assert "settled_at" in found
    again = json.loads(agent_shell.run("propose", *words).stdout)
    assert again["id"] == found["id"]
    assert Proposal.objects.count() == 1


@pytest.mark.servers
def test_it_waits_until_people_have_decided(agent_shell: Shell, desk: Desk) -> None:
    process = agent_shell.start(
        "propose", *LETTER_WORDS, "--rationale", "asked", "--wait", "60"
    )
    desk.decide("reject", reason_code="not_needed", reason="Ann\x1b[2J knows.")
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (4, "")
    assert "write was rejected." in output
    assert "| Ann\\x1b[2J knows." in output


@pytest.mark.servers
def test_arguments_that_do_not_fit_are_one_line(agent_shell: Shell) -> None:
    done = agent_shell.run("propose", "write", "--args", '{"to": 7}', "--thread", "t")
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert "args.to" in line
    assert "Correct the fields" in line
    assert line.endswith("(422 invalid_args)")


def test_a_lost_answer_is_found_by_its_key(
    gate: LoopbackGate, loopback_shell: Shell
) -> None:
    gate.faults += [Fault(503, "server", after=True)] + [Fault(503, "server")] * 3
    words = ("propose", "pay", "--args", "{}", "--thread", "t-1")
    lost = loopback_shell.run(*words)
    assert lost.returncode == 1
    assert "Traceback" not in lost.stderr
    key = lost.stderr.partition("--key ")[2].split()[0]
    found = loopback_shell.run(*words, "--key", key)
    assert found.stdout.startswith("p-1: pay waits for people.")
    assert len(gate.proposals) == 1


def test_who_stops_waiting_learns_how_to_go_on(
    gate: LoopbackGate, loopback_shell: Shell
) -> None:
    words = ("propose", "pay", "--args", "{}", "--thread", "t-1", "--wait", "60")
    loopback_shell.command = COMMAND
    process = loopback_shell.start(*words)
    wait_until(lambda: any("?wait=" in path for _, path, _, _ in gate.calls), 20)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=20)
    assert (process.returncode, output) == (130, "")
    assert "counterseal wait p-1" in errors
    assert "Traceback" not in errors


def test_an_agents_key_is_no_idempotency_key(loopback_shell: Shell) -> None:
    secret = "cs_k7xw2m9q_secretsecret"
    words = ("propose", "pay", "--args", "{}", "--thread", "t", "--key", secret)
    done = loopback_shell.run(*words)
    assert done.returncode == 2
    assert secret not in done.stdout + done.stderr


def test_arguments_come_from_a_file_too(tmp_path: Path) -> None:
    file = tmp_path / "args.json"
    file.write_text('{"to": "Zoë"}', encoding="utf-8")
    assert read_arguments(f"@{file}") == {"to": "Zoë"}


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("{", "not JSON"),
        ("[]", "a JSON object"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": 1, "a": 2}', "contains the same key twice"),
        ('{"a": "\\ud800"}', "half a surrogate pair"),
        ("[" * 100_000, "nested too deeply"),
        ("@/no/such/file", "No such file"),
    ],
)
def test_arguments_that_are_none_are_refused(text: str, rule: str) -> None:
    with pytest.raises(InvalidUsage, match=rule):
        read_arguments(text)
