"""The examples at the end of each command's help: the client's own, and the form that
they and the server's are shown in."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping

HEADING = "Examples:"
EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "conformance": (
        "counterseal conformance --help",
        "counterseal conformance langgraph --gate https://gate.example.com"
        " --key KEY --token TOKEN",
    ),
    "doctor": ("counterseal doctor", "counterseal doctor --json"),
    "hook": (
        "counterseal hook claude-code --policy",
        "counterseal hook claude-code --wait 120",
    ),
    "init": (
        "counterseal init https://gate.example.com",
        "counterseal init langgraph --run",
        "counterseal init claude-code",
        "counterseal init function --tool process_refund --file refund.py",
    ),
    "mcp": (
        "counterseal mcp -- python notes.py serve",
        "counterseal mcp --gate https://gate.example.com -- npx some-server",
    ),
    "propose": (
        "counterseal propose send_note --thread order_78203"
        """ --args '{"to": "ann", "text": "Sent."}'""",
        "counterseal propose send_note --thread order_78203 --args @note.json"
        " --wait 60",
    ),
    "review": (
        "counterseal review",
        "counterseal review r-vt9x9t0wpsjebsdkn6bw",
        "counterseal review reject r-vt9x9t0wpsjebsdkn6bw --reason 'Wrong order.'",
    ),
    "tools": (
        "counterseal tools import -- python notes.py serve",
        "counterseal tools import --queue notes --tools notes.json"
        " -- python notes.py serve",
    ),
    "wait": (
        "counterseal wait p-b7gx1dkm2w9qzs40rvth",
        "counterseal wait p-b7gx1dkm2w9qzs40rvth --timeout 3600 --json",
    ),
}
"""The examples of each command of the client."""


class HelpFormatter(argparse.HelpFormatter):
    """Fills every paragraph but examples, whose lines are to be copied."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith(HEADING):
            return "".join(f"{indent}{line}\n" for line in text.splitlines())
        return super()._fill_text(text, width, indent)


def format_examples(examples: Iterable[str]) -> str:
    """Examples as the epilog of a parser."""
    return "\n".join([HEADING, *(f"  {example}" for example in examples)])
