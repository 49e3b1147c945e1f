"""The commands of the server, which its own distribution brings: where it is installed,
`counterseal` has both parts."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence

NAMES = (
    "up",
    "serve",
    "worker",
    "beat",
    "migrate",
    "check",
    "setup-link",
    "log",
    "tools",
    "restored",
    "people",
    "policy",
    "agents",
    "keys",
)


# The client brings this one of a group of the server.
IMPORT = ["tools", "import"]


def has_command(arguments: Sequence[str]) -> bool:
    """Whether the server has the command that these arguments name."""
    first = list(arguments[:2])
    return bool(first) and first[0] in NAMES and first != IMPORT


def is_installed() -> bool:
    """Whether the server stands beside this client."""
    return importlib.util.find_spec("counterseal") is not None


def run_server_command(arguments: Sequence[str]) -> int:
    """Run a command of the installed server, and return its exit code."""
    code: int = importlib.import_module("counterseal").run(arguments)
    return code


def diagnose() -> list[dict[str, str]]:
    """What the installed server finds about the gate that this machine runs."""
    rows: list[dict[str, str]] = importlib.import_module("counterseal").diagnose()
    return rows


def describe_server_commands() -> str:
    """A paragraph for the help, empty where the server is not installed."""
    if not is_installed():
        return ""
    return f"Commands of the server: {', '.join(NAMES)}.\n\n"
