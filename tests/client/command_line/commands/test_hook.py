"""`counterseal hook claude-code` as Claude Code runs it, against the product and
against a gate that fails. The inputs have the shape that Claude Code 2.1.332 sends."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from counterseal_client.claude_code.gate_tools import ALL_GATE_TOOLS
from reviews.models import ApprovalRequest, Execution, Proposal
from tests.client.command_line.shell import COMMAND, Shell
from tests.client.gate import LoopbackGate
from tests.client.test_tools import Desk
from tests.stack import wait_until

SESSION = "4929d646-4fb6-4491-9092-4bef21839783"


def build_input(cwd: Path, tool: str, use: str = "toolu_0001", **more: Any) -> str:
    """What Claude Code gives to its hook."""
    found = {
        "session_id": SESSION,
        "transcript_path": f"{cwd}/{SESSION}.jsonl",
        "cwd": str(cwd),
        "prompt_id": "55989e74-dabb-48ca-97f8-fd3ed680e33c",
        "permission_mode": "acceptEdits",
        "hook_event_name": "PreToolUse",
        "tool_name": tool,
        "tool_use_id": use,
        **more,
    }
    return json.dumps(found)


def build_command(cwd: Path, command: str, **more: Any) -> str:
    given = {"command": command, "description": "Do it"}
    return build_input(cwd, "Bash", tool_input=given, **more)


def run_hook(shell: Shell, typed: str, *words: str) -> CompletedProcess[str]:
    return shell.run("hook", "claude-code", *words, typed=typed)


def read_answer(done: CompletedProcess[str]) -> dict[str, Any]:
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)["hookSpecificOutput"]
    assert found["hookEventName"] == "PreToolUse"
    return found


def hold_call(shell: Shell, typed: str) -> str:
    """Propose a call and give up waiting; what the model reads."""
    answer = read_answer(run_hook(shell, typed, "--wait", "0"))
    assert answer["permissionDecision"] == "deny"
    return str(answer["permissionDecisionReason"])


def list_kept(shell: Shell, kind: str) -> list[Path]:
    folder = shell.home / ".local" / "state" / "counterseal" / "claude_code"
    return sorted(folder.glob(f"{kind}-*.json"))


@pytest.mark.servers
def test_a_free_call_passes_without_an_opinion(
    claude_shell: Shell, claude_desk: Desk, workspace: Path
) -> None:
    given = {"file_path": str(workspace / "a.txt")}
    for typed in (
        build_input(workspace, "Read", tool_input=given),
        build_command(workspace, "git status"),
    ):
        done = run_hook(claude_shell, typed)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not Proposal.objects.exists()


@pytest.mark.servers
def test_an_approved_call_runs_under_a_claim_and_is_reported(
    claude_shell: Shell, claude_desk: Desk, workspace: Path
) -> None:
    typed = build_command(workspace, "make deploy")
    text = hold_call(claude_shell, typed)
    request = ApprovalRequest.objects.get()
    assert f"{claude_desk.url}/requests/{request.pk}/" in text
    assert "the same call resumes the same request" in text
    claude_desk.decide()
    answer = read_answer(run_hook(claude_shell, typed))
    assert answer["permissionDecision"] == "allow"
    given = {"command": "make deploy", "description": "Do it"}
    assert answer["updatedInput"] == given
    execution = Execution.objects.get()
    assert execution.status == "claimed"
    (kept,) = list_kept(claude_shell, "claim")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert "make deploy" not in kept.read_text()
    ended = {"hook_event_name": "PostToolUse", "tool_response": {"stdout": ""}}
    report = build_command(workspace, "make deploy", **ended, duration_ms=21)
    done = run_hook(claude_shell, report)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    execution.refresh_from_db()
    assert execution.status == "succeeded"
    assert list_kept(claude_shell, "claim") == []
    again = read_answer(run_hook(claude_shell, typed))
    assert again["permissionDecision"] == "deny"
    assert "performed already" in again["permissionDecisionReason"]
    (proposal,) = claude_desk.gate.list(thread=SESSION)
    assert proposal.execution is not None
    assert proposal.execution.result == {"ended": "success", "duration_ms": 21}


@pytest.mark.servers
def test_it_waits_for_people(
    claude_shell: Shell, claude_desk: Desk, workspace: Path
) -> None:
    given = {"file_path": str(workspace / "b.txt"), "content": "b\n"}
    typed = build_input(workspace, "Write", tool_input=given)
    process = claude_shell.start_with(
        "hook", "claude-code", "--wait", "60", typed=typed
    )
    claude_desk.decide("reject", reason_code="unsafe", reason="Ann owns b.txt.")
    output, errors = process.communicate(timeout=60)
    answer = read_answer(CompletedProcess([], process.returncode, output, errors))
    assert answer["permissionDecision"] == "deny"
    reason = answer["permissionDecisionReason"]
    assert 'A reviewer rejected it (unsafe). They wrote: "Ann owns b.txt."' in reason
    assert list_kept(claude_shell, "waiting") == []


@pytest.mark.servers
def test_a_later_equal_call_takes_up_what_was_approved_meanwhile(
    claude_shell: Shell, claude_desk: Desk, workspace: Path
) -> None:
    hold_call(claude_shell, build_command(workspace, "make deploy"))
    claude_desk.decide()
    typed = build_command(workspace, "make deploy", use="toolu_0002")
    assert read_answer(run_hook(claude_shell, typed))["permissionDecision"] == "allow"
    assert Proposal.objects.count() == 1
    third = hold_call(
        claude_shell, build_command(workspace, "make deploy", use="toolu_0003")
    )
    assert "still waiting" in third  # one approval is for one call
    assert Proposal.objects.count() == 2


@pytest.mark.servers
def test_a_changed_command_runs_as_it_was_approved(
    claude_shell: Shell, claude_desk: Desk, workspace: Path
) -> None:
    typed = build_command(workspace, "rm -rf build dist")
    hold_call(claude_shell, typed)
    args = {"command": "rm -rf build", "cwd": str(workspace)}
    claude_desk.decide("modify", args=args, reason_code="other", reason="Keep dist.")
    answer = read_answer(run_hook(claude_shell, typed))
    assert answer["permissionDecision"] == "allow"
    changed = {"command": "rm -rf build", "description": "Do it"}
    assert answer["updatedInput"] == changed
    assert "A reviewer changed the input" in answer["additionalContext"]
    failed = {"hook_event_name": "PostToolUseFailure", "error": "Exit code 1\nno"}
    report = build_input(workspace, "Bash", tool_input=changed, **failed)
    assert run_hook(claude_shell, report).returncode == 0
    (proposal,) = claude_desk.gate.list(thread=SESSION)
    assert proposal.execution is not None
    assert proposal.execution.status == "succeeded"
    assert proposal.execution.result == {"ended": "Exit code 1"}


@pytest.mark.servers
def test_another_folder_than_the_calls_cannot_be_approved(
    claude_shell: Shell, claude_desk: Desk, workspace: Path
) -> None:
    typed = build_command(workspace, "make deploy")
    hold_call(claude_shell, typed)
    args = {"command": "make deploy", "cwd": "/elsewhere"}
    claude_desk.decide("modify", args=args, reason_code="other", reason="There.")
    answer = read_answer(run_hook(claude_shell, typed))
    assert answer["permissionDecision"] == "deny"
    assert "/elsewhere" in answer["permissionDecisionReason"]
    assert Execution.objects.get().status == "failed"


@pytest.mark.servers
def test_a_call_that_ran_with_another_input_is_reported_as_unknown(
    claude_shell: Shell, claude_desk: Desk, workspace: Path
) -> None:
    typed = build_command(workspace, "make deploy")
    hold_call(claude_shell, typed)
    claude_desk.decide()
    read_answer(run_hook(claude_shell, typed))
    report = build_command(workspace, "make all", hook_event_name="PostToolUse")
    assert run_hook(claude_shell, report).returncode == 0
    execution = Execution.objects.get()
    assert (execution.status, execution.code) == ("unknown", "input_changed")


@pytest.mark.servers
@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Edit", {"file_path": "a", "old_string": "x", "new_string": "y"}),
        (
            "MultiEdit",
            {"file_path": "a", "edits": [{"old_string": "", "new_string": ""}]},
        ),
        ("NotebookEdit", {"notebook_path": "n.ipynb", "new_source": "x"}),
        ("Read", {"file_path": "/etc/passwd"}),
        ("WebFetch", {"url": "https://example.com", "prompt": "x"}),
        ("WebSearch", {"query": "x"}),
        ("mcp__store__refund", {"order": {"id": 7}}),
        ("Workflow", {"script": "x"}),
    ],
)
def test_each_tool_is_proposed_under_its_own_name(
    claude_shell: Shell,
    claude_desk: Desk,
    workspace: Path,
    tool: str,
    given: dict[str, Any],
) -> None:
    text = hold_call(claude_shell, build_input(workspace, tool, tool_input=given))
    assert text.partition(":")[0] in ALL_GATE_TOOLS
    assert Proposal.objects.count() == 1


@pytest.mark.servers
def test_a_field_that_the_policy_does_not_know_blocks(
    claude_shell: Shell, claude_desk: Desk, workspace: Path
) -> None:
    given = {"command": "make", "newer": True}
    done = run_hook(claude_shell, build_input(workspace, "Bash", tool_input=given))
    assert (done.returncode, done.stdout) == (2, "")
    assert "args.newer" in done.stderr
    assert "(422 invalid_args)" in done.stderr


@pytest.mark.servers
def test_it_can_defer_what_nobody_has_decided(
    claude_shell: Shell, claude_desk: Desk, workspace: Path
) -> None:
    typed = build_command(workspace, "make deploy")
    done = run_hook(claude_shell, typed, "--wait", "0", "--defer")
    assert read_answer(done)["permissionDecision"] == "defer"


def test_a_gate_that_does_not_answer_blocks(tmp_path: Path) -> None:
    shell = Shell(
        tmp_path,
        {
            "COUNTERSEAL_URL": "http://127.0.0.1:9",
            "COUNTERSEAL_KEY": "cs_k7xw2m9q_secret",
        },
    )
    done = run_hook(shell, build_command(tmp_path, "make"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Counterseal blocks this call: POST ")
    assert "secret" not in done.stderr


def test_a_wrong_key_and_no_settings_block(gate: LoopbackGate, tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    typed = build_command(tmp_path, "make")
    without = run_hook(shell, typed)
    assert without.returncode == 2
    assert "`counterseal init`" in without.stderr
    shell.variables |= {"COUNTERSEAL_URL": gate.url, "COUNTERSEAL_KEY": "cs_wrong"}
    wrong = run_hook(shell, typed)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "(401 bad_key)" in wrong.stderr


@pytest.mark.parametrize(
    ("typed", "rule"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a JSON object"),
        ("{}", "`hook_event_name` is missing"),
        ('{"hook_event_name": "PreToolUse"}', "session_id"),
        ('{"hook_event_name": "Stop", "hook_event_name": "Stop"}', "twice"),
        (
            '{"hook_event_name": "PreToolUse", "session_id": "../x", "cwd": "/",'
            ' "tool_name": "Bash", "tool_input": {}}',
            "session_id",
        ),
        (
            '{"hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/",'
            ' "tool_name": "Bash", "tool_input": "git status"}',
            "tool_input",
        ),
    ],
)
def test_an_input_that_is_none_blocks(tmp_path: Path, typed: str, rule: str) -> None:
    done = run_hook(Shell(tmp_path), typed)
    assert (done.returncode, done.stdout) == (2, "")
    assert rule in done.stderr
    assert "Traceback" not in done.stderr


def test_other_events_pass(tmp_path: Path) -> None:
    done = run_hook(Shell(tmp_path), '{"hook_event_name": "SessionStart"}')
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_who_interrupts_the_hook_does_not_let_the_call_go_on(
    gate: LoopbackGate, loopback_shell: Shell, tmp_path: Path
) -> None:
    typed = build_command(tmp_path, "make")
    loopback_shell.command = COMMAND
    process = loopback_shell.start_with("hook", "claude-code", typed=typed)
    wait_until(lambda: any("?wait=" in path for _, path, _, _ in gate.calls), 20)
    process.send_signal(2)
    output, errors = process.communicate(timeout=20)
    assert (process.returncode, output) == (2, "")
    assert "blocks this call" in errors


def test_the_policy_is_printed(tmp_path: Path) -> None:
    done = run_hook(Shell(tmp_path), "", "--policy")
    assert done.returncode == 0
    assert all(f"  {name}:\n" in done.stdout for name in ALL_GATE_TOOLS)
