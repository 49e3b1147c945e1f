"""Which calls of Claude Code need no gate; above all, which do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from counterseal_client.claude_code.free_calls import (
    find_workspace,
    is_free,
    is_free_command,
)
from counterseal_client.claude_code.hook_inputs import HookInput


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("a")
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret.txt")
    return folder


def build_call(workspace: Path, tool: str, cwd: str = "", **given: Any) -> HookInput:
    return HookInput(
        hook_event_name="PreToolUse",
        session_id="s-1",
        cwd=cwd or str(workspace),
        tool_name=tool,
        tool_input=given,
        tool_use_id="toolu_1",
    )


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "git status --short",
        "git --no-pager diff --stat",
        "git diff --cached -- src/a.py",
        "git diff main..feature",
        "git log --oneline -n 5",
        "git show HEAD:src/a.py",
        "git add -A",
        "git add src/a.py 'a file.txt'",
        "git commit -m 'Fix (all) of it; && done'",
        'git commit -am "Fix it"',
        "git commit -m '$(rm -rf /)'",  # a literal text to every shell
        "git restore --staged a.txt",
        "git branch --show-current",
    ],
)
def test_a_plain_git_command_that_looks_stages_or_commits_is_free(command: str) -> None:
    assert is_free_command(command)


@pytest.mark.parametrize(
    "command",
    [
        # more than one command, or one that a shell changes
        "git commit -m x && rm -rf /",
        "git commit -m x; rm -rf /",
        "git status;rm a",
        "git status & rm a",
        "git status || rm a",
        "git status | sh",
        "git status\nrm -rf /",
        "git status\rrm a",
        "git commit -m 'a\nb'",
        "git add $(rm a)",
        "git add `rm a`",
        'git commit -m "$(rm a)"',
        'git commit -m "`rm a`"',
        'git commit -m "a\\" && rm b"',
        "git add ${HOME}",
        "git add <(rm a)",
        "git log > a.py",
        "git log >> a.py",
        "git diff < a",
        "git add *",
        "git add ?",
        "git add [a]",
        "git add {a,b}",
        "git add ~/x",
        "git add a\\ b",
        "git add 'a",
        "git\tstatus",
        "git\u00a0status",
        "git status #x",
        "git status !x",
        "=git status",
        # another program, or other settings for git
        "GIT_EXTERNAL_DIFF=evil git diff",
        "env git status",
        "command git status",
        "/usr/bin/git status",
        "./git status",
        "gitx status",
        "git -c core.pager=evil log",
        "git -c alias.status=!evil status",
        "git -C / status",
        "git --git-dir=/x status",
        "git --exec-path=/x status",
        "git --config-env=a=b status",
        # commands that publish, or change more than the index
        "git push",
        "git push --dry-run",
        "git merge main",
        "git rebase main",
        "git pull",
        "git fetch",
        "git clone x",
        "git checkout a",
        "git switch a",
        "git reset --hard",
        "git clean -fd",
        "git stash",
        "git tag v1",
        "git branch new",
        "git branch -D main",
        "git restore a.txt",
        "git config a.b c",
        "git submodule update",
        "git worktree add x",
        "git bisect run evil",
        "git filter-branch",
        # options that write, read elsewhere or start a program
        "git diff --output=a.py",
        "git log --output=a.py",
        "git diff --no-index a b",
        "git diff --ext-diff",
        "git log --textconv",
        "git log --show-signature",
        "git diff /etc/passwd /dev/null",
        "git diff a ../../etc/passwd",
        "git add ../other",
        "git add -- ../other",
        "git add -p",
        "git add -e",
        "git add --pathspec-from-file=/etc/passwd",
        "git commit",
        "git commit -m",
        "git commit -F /etc/passwd",
        "git commit --amend -m x",
        "git commit --no-verify -m x",
        "git commit -nm x",
        "git commit -S -m x",
        "git commit -m x -e",
        "git commit -m x --template=/etc/passwd",
        "git commit -m x -- -F",
        "git blame --contents=/etc/passwd a",
        "git show --format=%x --ext-diff",
        # not git, or no command
        "ls",
        "cat a.txt",
        "git",
        "git --no-pager",
        "git --help",
        "",
        " git status",
        None,
        7,
        ["git", "status"],
    ],
)
def test_everything_else_is_proposed(command: Any) -> None:
    assert not is_free_command(command)


def test_a_free_command_runs_in_the_workspace_and_as_usual(workspace: Path) -> None:
    free: dict[str, Any] = {"command": "git status", "description": "Look"}
    assert is_free(build_call(workspace, "Bash", **free), workspace)
    outside = build_call(workspace, "Bash", cwd=str(workspace.parent), **free)
    assert not is_free(outside, workspace)
    unusual: list[dict[str, Any]] = [
        {"run_in_background": True},
        {"dangerouslyDisableSandbox": True},
    ]
    for more in unusual:
        assert not is_free(build_call(workspace, "Bash", **free, **more), workspace)


@pytest.mark.parametrize(
    ("tool", "given", "free"),
    [
        ("Read", {"file_path": "a.txt"}, True),
        ("Read", {"file_path": "../secret.txt"}, False),
        ("Read", {"file_path": "link"}, False),
        ("Read", {"file_path": "/etc/passwd"}, False),
        ("Read", {"file_path": "~/x"}, False),
        ("Read", {"file_path": "a\0b"}, False),
        ("Read", {"file_path": 7}, False),
        ("Grep", {"pattern": "../secret"}, True),
        ("Grep", {"pattern": "x", "path": ".."}, False),
        ("Grep", {"pattern": "x", "glob": "../*"}, False),
        ("Glob", {"pattern": "**/*.py"}, True),
        ("Glob", {"pattern": "../*"}, False),
        ("Glob", {"pattern": "{a,..}/*"}, False),
        ("Glob", {"pattern": "/etc/*"}, False),
        ("TodoWrite", {"todos": []}, True),
        ("Agent", {"prompt": "x", "subagent_type": "Explore"}, True),
        ("Agent", {"prompt": "x", "isolation": "remote"}, False),
        ("Write", {"file_path": "a.txt", "content": ""}, False),
        ("WebFetch", {"url": "https://example.com"}, False),
        ("mcp__store__read", {}, False),
        ("Newer", {}, False),
    ],
)
def test_reads_inside_and_notes_are_free(
    workspace: Path, tool: str, given: dict[str, Any], free: bool
) -> None:
    assert is_free(build_call(workspace, tool, **given), workspace) is free


def test_the_workspace_stays_where_the_session_began(workspace: Path) -> None:
    call = build_call(workspace, "Read", cwd="/", file_path="etc/passwd")
    assert find_workspace(call, {"CLAUDE_PROJECT_DIR": str(workspace)}) == workspace
    assert not is_free(call, workspace)
    assert not is_free(call, find_workspace(call, {}))  # the root is no workspace
