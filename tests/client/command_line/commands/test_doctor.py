"""`counterseal doctor` where only the client is installed, and beside a server."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from counterseal_client.command_line import server_commands
from counterseal_client.command_line.main import main
from tests.client.command_line.shell import Shell
from tests.client.gate import LoopbackGate


def diagnose(shell: Shell, code: int) -> dict[str, dict[str, Any]]:
    """The findings of the command by their subject, once it has ended with a code."""
    done = shell.run("doctor", "--json")
    assert done.returncode == code, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert result["ok"] is (code == 0)
    findings = {row["subject"]: row for row in result["findings"]}
    for row in findings.values():
        assert (row["level"] == "ok") == (not row["repair"])
    return findings


def test_a_sound_client_is_ok_in_every_line(
    loopback_shell: Shell, gate: LoopbackGate
) -> None:
    findings = diagnose(loopback_shell, 0)
    assert list(findings) == [
        *("Client", "Server", "Gate", "Answer", "Clock", "Key", "Policy"),
    ]
    assert findings["Gate"]["text"] == f"{gate.url}, from COUNTERSEAL_URL"
    assert "agent riley is running" in findings["Key"]["text"]
    printed = loopback_shell.run("doctor")
    assert printed.stdout.splitlines()[-1] == "0 wrong, 0 to look at, 7 ok"


@pytest.mark.parametrize(
    ("variables", "subject", "repair"),
    [
        ({}, "Gate", "pip install counterseal && counterseal up --solo"),
        ({"COUNTERSEAL_URL": "gate"}, "Settings", "counterseal up --solo"),
        (
            {"COUNTERSEAL_URL": "http://127.0.0.1:9", "COUNTERSEAL_KEY": "cs_secret12"},
            "Answer",
            "curl -sS http://127.0.0.1:9/livez",
        ),
    ],
)
def test_what_is_wrong_has_a_repair(
    loopback_shell: Shell, variables: dict[str, str], subject: str, repair: str
) -> None:
    loopback_shell.variables = variables
    finding = diagnose(loopback_shell, 1)[subject]
    assert (finding["level"], finding["repair"]) == ("wrong", repair)


def test_a_wrong_key_is_not_printed(loopback_shell: Shell, gate: LoopbackGate) -> None:
    loopback_shell.variables["COUNTERSEAL_KEY"] = "cs_k7xw2m9q_wrong"
    finding = diagnose(loopback_shell, 1)["Key"]
    assert finding["repair"] == f"counterseal init {gate.url} --new-key"
    assert "cs_k7xw2m9q" not in loopback_shell.run("doctor").stdout


def test_a_file_that_others_read_is_named_with_its_repair(
    loopback_shell: Shell,
) -> None:
    file = loopback_shell.settings_file
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    file.chmod(0o644)
    finding = diagnose(loopback_shell, 1)["Settings"]
    assert finding["repair"] == f"chmod 600 {file}"


def test_the_servers_findings_come_after_the_clients(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    row = {"subject": "Broker", "level": "wrong", "text": "\x1b[2J", "repair": "up"}
    monkeypatch.setattr(server_commands, "is_installed", lambda: True)
    monkeypatch.setattr(server_commands, "diagnose", lambda: [row])
    assert main(["doctor"]) == 1
    printed = capsys.readouterr().out
    assert re.search(r"^warn +Gate ", printed, re.M)
    assert re.search(r"^wrong +Broker +\\x1b\[2J\n +up$", printed, re.M)
