"""The settings of Claude Code that put it behind the gate."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from typing import Any

from .hook_inputs import EVENTS

WAIT_SECONDS = 300.0
SPARE_SECONDS = 60
"""How much longer than the wait Claude Code lets the hook run."""

REPORT_SECONDS = 60


def build_hook_settings() -> dict[str, Any]:
    """The hooks for `settings.json`. A failure of any kind blocks the call: the shell
    turns each exit code but 0 into 2, and `onFailure` covers the time-out."""
    hooks = {}
    for event in EVENTS:
        seconds = int(WAIT_SECONDS) + SPARE_SECONDS
        hook = {
            "type": "command",
            "command": f"{find_command()} hook claude-code || exit 2",
            "timeout": seconds if event == "PreToolUse" else REPORT_SECONDS,
            "onFailure": "block",
        }
        hooks[event] = [{"matcher": "*", "hooks": [hook]}]
    return {"hooks": hooks}


def format_hook_settings() -> str:
    """The same as the text of the file."""
    return json.dumps(build_hook_settings(), indent=2) + "\n"


def find_command() -> str:
    """How a shell runs this program. `-P` keeps a module in the agent's own folder from
    taking its place."""
    if shutil.which("counterseal"):
        return "counterseal"
    return f"{shlex.quote(sys.executable)} -P -m counterseal_client"
