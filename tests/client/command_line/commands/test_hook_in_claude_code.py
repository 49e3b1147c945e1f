"""The real Claude Code with `counterseal hook claude-code` and a scripted model,
without a network. It runs where CLAUDE_CODE names the program, such as the one in the
wheel of claude-agent-sdk (`claude_agent_sdk/_bundled/claude`)."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from counterseal_client.claude_code.hook_settings import build_hook_settings
from reviews.models import Execution, Proposal
from tests.client.claude_code.messages_server import ScriptedModel, ToolUse, running
from tests.client.command_line.shell import Shell
from tests.client.test_tools import Desk
from tests.stack import wait_until

PROGRAM = os.environ.get("CLAUDE_CODE", "")

pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(not PROGRAM, reason="CLAUDE_CODE names no Claude Code"),
]


def write_settings(workspace: Path, *options: str) -> None:
    """The settings of `counterseal init`, with options of the hook."""
    text = json.dumps(build_hook_settings())
    if options:
        words = " ".join(["hook claude-code", *options])
        text = text.replace("hook claude-code", words)
    folder = workspace / ".claude"
    folder.mkdir(exist_ok=True)
    (folder / "settings.json").write_text(text)


@contextmanager
def start_session(
    shell: Shell, workspace: Path, calls: Sequence[ToolUse], *words: str
) -> Iterator[tuple[ScriptedModel, subprocess.Popen[str]]]:
    """A run of `claude -p` in the workspace."""
    with running(calls) as model:
        environment = {
            **shell.environment,
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "sk-ant-scripted",
            "ANTHROPIC_MODEL": "claude-sonnet-4-5",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
        del environment["CLAUDE_PROJECT_DIR"]  # Claude Code sets it for its hooks
        with subprocess.Popen(
            [PROGRAM, "-p", *(words or ["Go on."]), "--output-format", "json"],
            cwd=workspace,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield model, process
                process.wait(60)
            finally:
                process.kill()


def test_an_edited_write_is_performed_as_approved_and_reported(
    claude_shell: Shell, claude_desk: Desk, workspace: Path
) -> None:
    read = ("Read", {"file_path": str(workspace / "a.txt")})
    file = workspace / "b.txt"
    write = ("Write", {"file_path": str(file), "content": "from the model\n"})
    write_settings(workspace)
    with start_session(claude_shell, workspace, [read, write]) as (model, _):
        args = {"file_path": str(file), "content": "from the reviewer\n"}
        claude_desk.decide("modify", args=args, reason_code="other", reason="So.")
        wait_until(lambda: "toolu_0002" in model.results, 60)
    assert "hello" in model.results["toolu_0001"]
    assert file.read_text() == "from the reviewer\n"
    assert Execution.objects.get().status == "succeeded"


def test_a_rejected_command_does_not_run_and_the_model_reads_why(
    claude_shell: Shell, claude_desk: Desk, workspace: Path
) -> None:
    calls = [("Bash", {"command": "touch made", "description": "Make it"})]
    write_settings(workspace)
    with start_session(claude_shell, workspace, calls) as (model, _):
        claude_desk.decide("reject", reason_code="unsafe", reason="Ann owns it.")
        wait_until(lambda: "toolu_0001" in model.results, 60)
    assert "Ann owns it." in model.results["toolu_0001"]
    assert not (workspace / "made").exists()


def test_a_gate_that_is_down_blocks_the_call(
    claude_shell: Shell, claude_desk: Desk, workspace: Path
) -> None:
    claude_shell.variables["COUNTERSEAL_URL"] = "http://127.0.0.1:9"
    calls = [("Bash", {"command": "touch made", "description": "Make it"})]
    write_settings(workspace)
    with start_session(claude_shell, workspace, calls) as (model, _):
        wait_until(lambda: "toolu_0001" in model.results, 60)
    assert "Counterseal blocks this call" in model.results["toolu_0001"]
    assert not (workspace / "made").exists()
    assert not Proposal.objects.exists()


def test_a_deferred_run_is_resumed_once_people_have_decided(
    claude_shell: Shell, claude_desk: Desk, workspace: Path
) -> None:
    write_settings(workspace, "--wait", "0", "--defer")
    calls = [("Bash", {"command": "touch made", "description": "Make it"})]
    with start_session(claude_shell, workspace, calls) as (_, process):
        output, _ = process.communicate(timeout=60)
    ended = json.loads(output)
    assert ended["stop_reason"] == "tool_deferred"
    assert not (workspace / "made").exists()
    claude_desk.decide()
    words = ("--resume", ended["session_id"])
    with start_session(claude_shell, workspace, calls, *words) as (model, process):
        process.communicate(timeout=60)
    assert "toolu_0001" in model.results
    assert (workspace / "made").exists()
    assert Proposal.objects.count() == 1
    assert Execution.objects.get().status == "succeeded"
