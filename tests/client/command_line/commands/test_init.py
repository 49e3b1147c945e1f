"""`counterseal init` against the product: the gate, the key, the settings file, and the
first lines of an agent."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agents.models import Agent
from counterseal_client.command_line.main import main
from counterseal_client.settings import Settings, save_file
from reviews.models import ApprovalRequest, Execution
from reviews.people import tokens
from tests.client.command_line.shell import COMMAND, Shell
from tests.client.gate import KEY, LoopbackGate
from tests.client.test_tools import LETTER, Desk
from tests.stack import wait_until

pytestmark = pytest.mark.servers


@pytest.fixture
def shell(home: Path) -> Shell:
    return Shell(home)


def test_it_checks_the_key_and_keeps_it_for_this_user(shell: Shell, desk: Desk) -> None:
    done = shell.run("init", desk.url, typed=f"{desk.key}\n")
    assert done.returncode == 0, done.stderr
    assert "agent riley" in done.stdout
    assert "write: Write a letter" in done.stdout
    assert done.stderr == ""
    assert desk.key not in done.stdout + done.stderr
    assert stat.S_IMODE(shell.settings_file.stat().st_mode) == 0o600
    stored = json.loads(shell.settings_file.read_text())
    assert stored == {"url": desk.url, "key": desk.key}
    again = shell.run("init")  # asks nothing that it knows
    assert (again.returncode, again.stderr) == (0, "")


def test_a_key_is_typed_unseen(shell: Shell, desk: Desk) -> None:
    shell.command = COMMAND
    with shell.talk("init", desk.url) as dialogue:
        dialogue.answer("(it is not shown): ", desk.key)
    assert dialogue.end() == 0, dialogue.text
    assert desk.key not in dialogue.text
    assert "counterseal agents register" in dialogue.text
    assert f"{desk.url}/agents/" in dialogue.text
    assert json.loads(shell.settings_file.read_text())["key"] == desk.key


def test_a_person_connects_beside_the_agent(shell: Shell, desk: Desk) -> None:
    shell.run("init", desk.url, typed=desk.key)
    token = tokens.create_token(person=desk.people.rita, name="terminal")
    without = shell.run("init", "--person")
    assert without.returncode == 2
    assert f"{desk.url}/me/tokens/" in without.stderr
    done = shell.run("init", "--person", typed=token)
    assert (done.returncode, done.stderr) == (0, "")
    stored = json.loads(shell.settings_file.read_text())
    assert stored == {"url": desk.url, "key": desk.key, "token": token}
    assert shell.run("review").stdout == "Nothing waits for you.\n"


def test_a_wrong_key_is_not_kept(shell: Shell, desk: Desk) -> None:
    wrong = "cs_k7xw2m9q_wrongwrongwrong"
    done = shell.run("init", desk.url, typed=wrong)
    assert done.returncode == 1
    assert "(401 bad_key)" in done.stderr
    assert wrong not in done.stdout + done.stderr
    assert not shell.settings_file.exists()


def test_a_key_of_the_environment_stays_there(shell: Shell, desk: Desk) -> None:
    shell.variables["COUNTERSEAL_KEY"] = desk.key
    done = shell.run("init", desk.url)
    assert done.returncode == 0, done.stderr
    assert json.loads(shell.settings_file.read_text()) == {"url": desk.url}


def test_the_first_lines_run_against_the_gate(
    shell: Shell, desk: Desk, home: Path
) -> None:
    words = ("function", "--tool", "write")
    done = shell.run("init", desk.url, *words, typed=desk.key)
    assert done.returncode == 0, done.stderr
    text = (home / "agent.py").read_text()
    assert "def write(to: str, text: str)" in text
    process = subprocess.Popen(
        [sys.executable, "agent.py", "t-1", json.dumps(LETTER)],
        cwd=home,
        env=shell.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: ApprovalRequest.objects.exists(), 20)
    desk.decide()
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    execution = Execution.objects.get()
    assert output.splitlines() == [
        f"Performing write under {execution.idempotency_key}",
        "{'printed': True}",
    ]
    assert execution.status == "succeeded"


def test_the_settings_of_claude_code_are_written_once(
    shell: Shell, desk: Desk, home: Path
) -> None:
    words = ("init", desk.url, "claude-code")
    done = shell.run(*words, typed=desk.key)
    assert done.returncode == 0, done.stderr
    missing = "The agent is not yet allowed to propose: claude_call_mcp_tool,"
    assert missing in done.stdout
    assert "counterseal hook claude-code --policy" in done.stdout
    file = home / ".claude" / "settings.json"
    found = json.loads(file.read_text())
    for event in ("PreToolUse", "PostToolUse", "PostToolUseFailure"):
        (entry,) = found["hooks"][event]
        (hook,) = entry["hooks"]
        assert hook["command"].endswith(" hook claude-code || exit 2")
        assert hook["onFailure"] == "block"
    assert found["hooks"]["PreToolUse"][0]["hooks"][0]["timeout"] == 360
    file.write_text("{}")
    again = shell.run(*words)
    assert again.returncode == 0
    assert "Add these entries to it" in again.stdout
    assert "hook claude-code" in again.stdout
    assert file.read_text() == "{}"


def test_the_gate_of_this_machine_is_found_and_its_agent_lacks_no_tool(
    shell: Shell, desk: Desk, home: Path
) -> None:
    Agent.objects.filter(slug="riley").update(tools=["*"])
    running = home / ".local/state/counterseal/gate.json"
    running.parent.mkdir(parents=True)
    save_file(running, Settings(desk.url, desk.key))
    file = home / ".claude" / "settings.json"
    done = shell.run("init", "claude-code", "--file", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert "It may propose every tool" in done.stdout
    assert "not yet allowed" not in done.stdout
    assert "PreToolUse" in file.read_text()


def test_a_file_is_overwritten_only_when_that_is_said(
    shell: Shell, gate: LoopbackGate, home: Path
) -> None:
    (home / "agent.py").write_text("mine")
    done = shell.run("init", "http://127.0.0.1:9", "function")
    assert done.returncode == 2
    assert "only with `--force`" in done.stderr
    assert (home / "agent.py").read_text() == "mine"
    words = ("init", gate.url, "function", "--force")
    assert shell.run(*words, typed="cs_test").returncode == 0
    assert "def send_note" in (home / "agent.py").read_text()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("agnno",), "no framework agnno"),
        (("agno", "crewai"), "at most one address and one framework"),
        (("--run",), "need a framework"),
        (("agno", "--tool", "pay"), "needs the framework `function`"),
        (("agno", "--person"), "cannot be used together"),
        (("mastra", "--file", "agent.py"), "is not the name of a program of mastra"),
        (("claude-code", "--run"), "cannot be used with `claude-code`"),
    ],
)
def test_words_that_do_not_fit_are_refused_before_anything_is_asked(
    words: tuple[str, ...], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", *words]) == 2
    assert text in capsys.readouterr().err


def test_a_key_that_up_wrote_is_not_stored_again(
    shell: Shell, gate: LoopbackGate, home: Path
) -> None:
    running = home / ".local" / "state" / "counterseal" / "gate.json"
    running.parent.mkdir(parents=True)
    running.write_text(json.dumps({"url": gate.url, "key": KEY}))
    running.chmod(0o600)
    done = shell.run("init", "humanlayer")
    assert done.returncode == 0, done.stderr
    assert not shell.settings_file.exists()
    assert (home / "humanlayer_agent.py").exists()


def test_an_unknown_tool_is_named_with_those_there_are(
    shell: Shell, desk: Desk
) -> None:
    words = ("function", "--tool", "erase")
    done = shell.run("init", desk.url, *words, typed=desk.key)
    assert done.returncode == 2
    assert "write" in done.stderr


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("gate.example.com", "not valid"),
        ("https://rita:secret@gate.example.com", "user name or password"),
        ("http://127.0.0.1:9", "No gate answers"),
    ],
)
def test_an_address_without_a_gate_is_refused(
    shell: Shell, url: str, rule: str
) -> None:
    done = shell.run("init", url, typed="cs_k7xw2m9q_never_sent")
    assert done.returncode == 1
    assert rule in done.stderr
    assert "secret" not in done.stderr
    assert not shell.settings_file.exists()


def test_a_gate_that_ends_in_the_middle_leaves_the_file_as_it_was(
    shell: Shell, gate: LoopbackGate
) -> None:
    assert shell.run("init", gate.url, typed="cs_test").returncode == 0
    before = shell.settings_file.read_text()
    done = shell.run("init", "--new-key", typed="cs_other")
    assert done.returncode == 1
    assert shell.settings_file.read_text() == before
    assert [path.name for path in shell.settings_file.parent.iterdir()] == [
        "settings.json"
    ]
