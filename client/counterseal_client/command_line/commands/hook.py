"""`counterseal hook`: the hooks of a coding agent, which the agent itself runs."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from ...claude_code import stored_calls
from ...claude_code.answers import answer_call, is_gated, name_claim, report_call
from ...claude_code.gate_tools import POLICY_FILE
from ...claude_code.hook_inputs import read_hook_input
from ...claude_code.hook_settings import WAIT_SECONDS
from ...errors import ApiError, CountersealError, format_errors
from ...gate import Gate
from ...settings import mask_secrets
from ...terminal.text import Line, Screen
from ..outcomes import ExitCode
from ..sessions import IMPATIENT, parse_seconds

BLOCKED = 2
"""The exit code that makes Claude Code block a call and give standard error to the
model. Every other one but 0 would let the call go on."""

LONGEST_INPUT = 16 * 1024 * 1024  # characters


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "hook",
        help="answer a hook of a coding agent",
        description="Answer one hook of a coding agent: its input on standard input,"
        " the decision on standard output. Exit code 2 blocks the call.",
        allow_abbrev=False,
    )
    parser.add_argument("program", choices=["claude-code"])
    parser.add_argument(
        "--wait",
        type=parse_seconds,
        default=WAIT_SECONDS,
        metavar="SECONDS",
        help="how many seconds to wait for people (300); less than the hook's time-out",
    )
    parser.add_argument(
        "--defer",
        action="store_true",
        help="if nobody has decided by then, end a run of `claude -p`, to be resumed",
    )
    parser.add_argument(
        "--policy",
        action="store_true",
        help="print the tools for the gate's policy, and end",
    )
    parser.set_defaults(run=run, by_person=False)


def run(given: argparse.Namespace) -> int:
    """Answer the hook. Whatever fails, the call is blocked."""
    if given.policy:
        Screen(sys.stdout).print_whole(POLICY_FILE.read_text(encoding="utf-8"))
        return ExitCode.DONE
    try:
        answer = answer_hook(sys.stdin.read(LONGEST_INPUT), given)
        if answer is not None:
            sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    except BaseException as error:  # even Ctrl-C must not let the call go on
        print_block(describe_failure(error))
        return BLOCKED
    return ExitCode.DONE


def answer_hook(text: str, given: argparse.Namespace) -> dict[str, Any] | None:
    """The answer to one event, or None for no opinion."""
    call = read_hook_input(text)
    if call is None:
        return None
    if call.hook_event_name == "PreToolUse":
        if not is_gated(call):
            return None
        with Gate(backoff=IMPATIENT) as gate:
            return answer_call(gate, call, given.wait, defer=given.defer)
    kept = stored_calls.load_claim(name_claim(call))
    if kept is not None:
        with Gate(backoff=IMPATIENT) as gate:
            report_call(gate, call, kept)
    return None


def describe_failure(error: BaseException) -> str:
    """What the model and the person read about a failure of the hook."""
    if isinstance(error, ApiError):
        fields = f"{format_errors(error.errors)}." if error.errors else ""
        said = " ".join(filter(None, [error.detail, fields, error.next_step]))
        return f"{said} ({error.status} {error.code})"
    if isinstance(error, CountersealError):
        return str(error)
    return f"The hook failed: {type(error).__name__}: {error}"


def print_block(text: str) -> None:
    """Say on standard error why the call is blocked."""
    line = f"Counterseal blocks this call: {mask_secrets(text)}"
    Screen(sys.stderr).print_line(Line(line))
