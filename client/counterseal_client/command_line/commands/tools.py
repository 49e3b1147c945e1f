"""`counterseal tools import`: policy entries for the tools of an MCP server."""

from __future__ import annotations

import argparse
from typing import Any

from ..outcomes import ExitCode
from .mcp import add_words_parser, run_words


def add_parser(commands: Any) -> None:
    add_words_parser(
        commands, "tools", "print policy entries for a server's tools (import)", run
    )


def run(given: argparse.Namespace) -> ExitCode:
    """Import the tools of the server that the words after `import` name."""
    return run_words(given.words, "counterseal tools import")
