"""`counterseal mcp` and `counterseal tools import`: their words reach the commands of
`counterseal_client.mcp` as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.client.command_line.shell import COMMAND, Shell
from tests.client.mcp.conftest import NOTES

SERVER = ["--", *NOTES]


@pytest.fixture
def shell(home: Path) -> Shell:
    return Shell(home)


@pytest.mark.parametrize("command", [["mcp", "import"], ["tools", "import"]])
def test_a_servers_tools_are_printed_as_policy_entries(
    shell: Shell, command: list[str]
) -> None:
    done = shell.run(*command, "--queue", "notes", *SERVER)
    assert done.returncode == 0, done.stderr
    entry = yaml.safe_load(done.stdout)["tools"]["send_note"]
    assert entry["executor"] == {"kind": "agent"}
    assert entry["queue"] == "notes"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mcp"], "Name one server"),
        (["mcp", "--nothing"], "unrecognized arguments: --nothing"),
        (["mcp", "--thread", "a b", "--", "x", "--thread", "y"], "--thread: write"),
        (["tools"], "needs the server"),
        (["tools", "export"], "needs the server"),
    ],
)
def test_a_wrong_command_line_is_named(
    shell: Shell, words: list[str], said: str
) -> None:
    shell.variables |= {
        "COUNTERSEAL_URL": "http://127.0.0.1:9",
        "COUNTERSEAL_KEY": "cs_x",
    }
    done = shell.run(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert not done.stdout


def test_the_stored_gate_is_used(shell: Shell) -> None:
    shell.settings_file.parent.mkdir(parents=True)
    shell.settings_file.write_text('{"url": "http://127.0.0.1:9", "key": "cs_x"}')
    shell.settings_file.chmod(0o600)
    shell.command = COMMAND
    done = shell.run("mcp", "--", "/nowhere/server")
    assert "/nowhere/server" in done.stderr
