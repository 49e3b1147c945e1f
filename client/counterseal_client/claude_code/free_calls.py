"""Calls of Claude Code that need no gate: reads and searches inside the workspace, its
own notes, and the git commands that only look, stage or commit.

A call is free only if all of it is understood; everything else is proposed. A free call
gets no answer from the hook, so that Claude Code's own permissions still apply to it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .hook_inputs import HookInput

NOTE_TOOLS = frozenset(
    {
        "AskUserQuestion",
        "EnterPlanMode",
        "ExitPlanMode",
        "TaskCreate",
        "TaskGet",
        "TaskList",
        "TaskUpdate",
        "TodoWrite",
    }
)
"""Tools that change nothing outside the session."""

READ_TOOLS: Mapping[str, str] = {
    "Read": "file_path",
    "NotebookRead": "notebook_path",
    "LS": "path",
    "Glob": "path",
    "Grep": "path",
}
"""Tools that only read, and the argument that says where."""

AGENT_TOOLS = frozenset({"Agent", "Task"})
AGENT_ARGUMENTS = frozenset(
    {"description", "model", "prompt", "run_in_background", "subagent_type"}
)
"""A sub-agent with no other argument runs in this session, and each of its calls
reaches the hook. One that runs elsewhere would have no hook."""

COMMAND_ARGUMENTS = frozenset({"command", "description", "timeout"})

_WORD = r"""(?:[A-Za-z0-9_./:@%+,-][A-Za-z0-9_./:=@%+,-]*
    |'[^'\x00-\x1f\x7f-\x9f]*'
    |"[^"$`\\!\x00-\x1f\x7f-\x9f]*")"""
PLAIN_COMMAND = re.compile(rf"{_WORD}+(?:\ +{_WORD}+)*", re.VERBOSE)
"""Words that every shell takes as they stand: no operator, redirection, substitution,
pattern, assignment before the command, line break or backslash."""

_SHOWN = (
    r"-\d+|-n|-n\d+|-p|-s|-w|-b|--max-count=\d+|--oneline|--graph|--all|--decorate"
    r"|--stat|--shortstat|--numstat|--summary|--name-only|--name-status|--patch"
    r"|--no-patch|--cached|--staged|--merged|--no-merges|--follow|--reverse|--word-diff"
    r"|--no-color|--no-ext-diff|--no-textconv|--abbrev-commit|--check|--raw"
    r"|--(?:since|until|after|before|author|grep|diff-filter)=.*|-U\d+|--unified=\d+"
)
FREE_OPTIONS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(options)
    for name, options in {
        "status": r"-s|-b|-sb|--short|--branch|--porcelain(=v[12])?|-u(no|normal|all)",
        "diff": _SHOWN,
        "log": _SHOWN,
        "show": _SHOWN,
        "blame": r"-w|-s|-e",
        "branch": r"-a|-r|-v|-vv|--list|--show-current|--all",
        "ls-files": r"-m|-o|-d|-s|--others|--modified|--exclude-standard",
        "rev-parse": r"--abbrev-ref|--short|--verify|--show-toplevel|--show-prefix",
        "add": r"-A|-u|-n|-v|-N|--all|--update|--dry-run|--verbose|--intent-to-add",
        "commit": r"-a|-q|-s|--all|--quiet|--signoff|--allow-empty|--dry-run",
        "restore": r"--staged|-S|-q|--quiet",
    }.items()
}
"""For each free command of git, its options that neither write elsewhere, nor read
outside the repository, nor start another program. Operands are checked apart."""

MESSAGE_OPTIONS = frozenset({"-m", "-am", "--message"})


def is_free(call: HookInput, workspace: Path) -> bool:
    """Whether the call needs no gate."""
    if call.tool_name in NOTE_TOOLS:
        return True
    if call.tool_name in AGENT_TOOLS:
        return call.tool_input.keys() <= AGENT_ARGUMENTS
    if call.tool_name in READ_TOOLS:
        return _reads_inside(call, workspace)
    if call.tool_name == "Bash":
        known = call.tool_input.keys() <= COMMAND_ARGUMENTS
        inside = is_inside(call.cwd, call.cwd, workspace)
        return known and inside and is_free_command(call.tool_input.get("command"))
    return False


def find_workspace(call: HookInput, environment: Mapping[str, str]) -> Path:
    """The folder that Claude Code was started in. The current folder of the call is not
    it: a command of the agent may have changed that one."""
    return Path(environment.get("CLAUDE_PROJECT_DIR") or call.cwd)


def is_inside(path: str, folder: str, workspace: Path) -> bool:
    """Whether the path, seen from the folder, leads into the workspace, whatever links
    there are on the way. The root of the machine is no workspace."""
    root = os.path.realpath(workspace)
    try:
        real = os.path.realpath(os.path.join(folder, path))
    except ValueError:  # a null character
        return False
    return root != os.sep and os.path.commonpath([root, real]) == root


def _reads_inside(call: HookInput, workspace: Path) -> bool:
    path = call.tool_input.get(READ_TOOLS[call.tool_name], ".")
    if not isinstance(path, str) or path.startswith("~"):
        return False
    patterns = [call.tool_input.get(name, "") for name in ("glob", "pattern")]
    if call.tool_name == "Grep":  # its `pattern` is no path
        patterns.pop()
    if not all(isinstance(one, str) and _is_local(one) for one in patterns):
        return False
    return is_inside(path, call.cwd, workspace)


def is_free_command(command: Any) -> bool:
    """Whether this is one plain command of git that only looks, stages or commits."""
    if not isinstance(command, str) or not PLAIN_COMMAND.fullmatch(command):
        return False
    words = shlex.split(command)
    if words[:2] == ["git", "--no-pager"]:
        words.pop(1)
    return len(words) > 1 and words[0] == "git" and _is_free_git(words[1], words[2:])


def _is_free_git(name: str, words: list[str]) -> bool:
    known = FREE_OPTIONS.get(name)
    if name == "commit":
        words, named = _take_messages(words)
        if not named:  # it would start an editor
            return False
    options = [word for word in words if word.startswith("-") and word != "--"]
    operands = [word for word in words if not word.startswith("-")]
    if name == "branch" and operands:  # it would make a branch
        return False
    if name == "restore" and not {"--staged", "-S"} & set(options):
        return False  # it would overwrite files
    if known is None or not all(known.fullmatch(word) for word in options):
        return False
    return all(map(_is_local, operands))


def _take_messages(words: Sequence[str]) -> tuple[list[str], bool]:
    """The words of `git commit` without its messages, and whether there was one."""
    rest: list[str] = []
    given = iter(words)
    named = False
    for word in given:
        if word == "--":
            return [*rest, *given], named
        if word in MESSAGE_OPTIONS:
            named = next(given, None) is not None
            if not named:
                return rest, False
        elif word.startswith("--message="):
            named = True
        else:
            rest.append(word)
    return rest, named


def _is_local(text: str) -> bool:
    """Whether a path, pattern or revision cannot name a place outside the folder.
    Git's own words for paths begin with a colon."""
    outside = text.startswith(("/", "~", ":")) or "\0" in text
    return not outside and ".." not in re.split(r"[/{},]", text)
